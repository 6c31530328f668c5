package titles_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/derived/derivedtest"
	"github.com/lineage-store/lineage/lineage/titles"
)

var bg = context.Background()

func open(t *testing.T, dir string) (*lineage.Store, *titles.Index) {
	store, err := lineage.Open(bg, dir, lineage.Options{Durability: lineage.Normal})
	require.NoError(t, err)
	x, err := titles.Open(bg, store, dir)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, x.Close())
		require.NoError(t, store.Close())
	})
	return store, x
}

// listed returns the threads of a store with their tips.
func listed(t *testing.T, store *lineage.Store) (all []titles.Thread) {
	for l, err := range store.Threads(bg, lineage.ThreadQuery{Oldest: true}) {
		require.NoError(t, err)
		active, err := store.View().Context(bg, l.Was.Active)
		require.NoError(t, err)
		all = append(all, titles.Thread{ThreadInfo: l.Was, Tip: active.Tip})
	}
	return all
}

// requireShown requires that all indexes have the titles that are read of the messages. It returns them.
func requireShown(t *testing.T, store *lineage.Store, indexes ...*titles.Index) []string {
	t.Helper()
	all := listed(t, store)
	want := []string{}
	for i := range all {
		title, err := store.ShownTitle(bg, all[i].ThreadInfo)
		require.NoError(t, err)
		want = append(want, title)
	}
	for range 2 {
		for _, x := range indexes {
			shown, err := x.Shown(bg, all)
			require.NoError(t, err)
			require.Equal(t, want, shown)
		}
	}
	return want
}

func newThread(t *testing.T, store *lineage.Store, o lineage.ThreadOptions, items ...lineage.Item) (*lineage.Thread, *lineage.Context) {
	thread, err := store.CreateThread(bg, o)
	require.NoError(t, err)
	c, err := thread.Active(bg)
	require.NoError(t, err)
	if len(items) > 0 {
		_, err = c.Extend(bg, items...)
		require.NoError(t, err)
	}
	return thread, c
}

// TestShown compares the titles of two handles, an owner and a guest, with those that are read of the messages, after changes of any kind.
func TestShown(t *testing.T) {
	dir := t.TempDir()
	store, x := open(t, dir)
	_, y := open(t, dir)
	titled, _ := newThread(t, store, lineage.ThreadOptions{Title: "Colours"}, lineage.User("Name a colour."))
	newThread(t, store, lineage.ThreadOptions{SourceID: "s-1"})
	_, later := newThread(t, store, lineage.ThreadOptions{SourceID: "s-2"}, lineage.System("be brief"))
	_, prompted := newThread(t, store, lineage.ThreadOptions{UserID: "ada"}, lineage.System("be brief"), lineage.User("Why is the sea blue?"), lineage.Assistant("It is not."))
	_, long := newThread(t, store, lineage.ThreadOptions{}, lineage.Assistant("first"))
	for i := range 20 {
		_, err := long.Extend(bg, lineage.Assistant(fmt.Sprint("answer ", i)))
		require.NoError(t, err)
	}
	fork, err := prompted.Fork(bg, lineage.ForkOptions{})
	require.NoError(t, err)
	_, err = fork.Extend(bg, lineage.User("Are you sure?"))
	require.NoError(t, err)
	require.Equal(t, []string{"Colours", "s-1", "be brief", "Why is the sea blue?", "first"}, sortedAs(requireShown(t, store, x, y), "Colours", "s-1", "be brief", "Why is the sea blue?", "first"))

	_, err = later.Extend(bg, lineage.User("And this?"))
	require.NoError(t, err)
	_, err = long.Extend(bg, lineage.User("too late to be a title"))
	require.NoError(t, err)
	_, err = prompted.Extend(bg, lineage.User("The next prompt."))
	require.NoError(t, err)
	shown := requireShown(t, store, x, y)
	require.Contains(t, shown, "And this?")
	require.NotContains(t, shown, "be brief")

	require.NoError(t, titled.Update(bg, func(info *lineage.ThreadInfo) error { info.Title = ""; return nil }))
	require.Contains(t, requireShown(t, store, x, y), "Name a colour.")

	first, err := store.At(bg, mustTip(t, prompted), 1)
	require.NoError(t, err)
	require.NoError(t, prompted.MoveTo(bg, first, "rewind"))
	require.Contains(t, requireShown(t, store, x, y), "be brief")
	_, err = prompted.Extend(bg, lineage.User("Why is the sky blue?"))
	require.NoError(t, err)
	require.Contains(t, requireShown(t, store, x, y), "Why is the sky blue?")
}

func mustTip(t *testing.T, c *lineage.Context) lineage.SpanRef {
	tip, err := c.Tip(bg)
	require.NoError(t, err)
	return tip
}

// sortedAs returns elements in the order of others.
func sortedAs(all []string, order ...string) (sorted []string) {
	for _, o := range order {
		for _, a := range all {
			if a == o {
				sorted = append(sorted, a)
			}
		}
	}
	return sorted
}

// TestErasedTitles erases and deletes what is shown. Another handle does not show it, and its text leaves the file with a list or a
// collection.
func TestErasedTitles(t *testing.T) {
	dir := t.TempDir()
	store, x := open(t, dir)
	_, y := open(t, dir)
	newThread(t, store, lineage.ThreadOptions{}, lineage.User("the secret badger"), lineage.Assistant("which one?"))
	gone, _ := newThread(t, store, lineage.ThreadOptions{}, lineage.User("an otter that is deleted"))
	newThread(t, store, lineage.ThreadOptions{}, lineage.User("a walrus"))
	require.Len(t, requireShown(t, store, x, y), 3)
	require.True(t, inFile(t, dir, "secret badger"))
	require.NoError(t, store.Erase(bg, content.Sum([]byte("the secret badger"))))
	require.NotContains(t, requireShown(t, store, x, y), "the secret badger")
	require.NoError(t, gone.Delete(bg))
	require.Len(t, requireShown(t, store, x, y), 2)
	newThread(t, store, lineage.ThreadOptions{}, lineage.User("the secret badger")) // it is stored again
	require.Contains(t, requireShown(t, store, x, y), "the secret badger")
	report, err := store.Collect(bg, lineage.CollectOptions{})
	require.NoError(t, err)
	require.Contains(t, report.Removed, titles.FileName)
	require.NoFileExists(t, filepath.Join(dir, titles.FileName))
	require.False(t, inFile(t, dir, "otter"))
	require.Len(t, requireShown(t, store, x, y), 3)
	require.False(t, inFile(t, dir, "otter"))
}

func inFile(t *testing.T, dir, text string) bool {
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(filepath.Join(dir, titles.FileName+suffix))
		if os.IsNotExist(err) {
			continue
		}
		require.NoError(t, err)
		if strings.Contains(string(b), text) {
			return true
		}
	}
	return false
}

// TestFarBehind lists after more commits than are read, with erasures among them.
func TestFarBehind(t *testing.T) {
	defer titles.SetMostBehind(titles.SetMostBehind(3))
	dir := t.TempDir()
	store, x := open(t, dir)
	_, y := open(t, dir)
	newThread(t, store, lineage.ThreadOptions{}, lineage.User("the secret badger"), lineage.Assistant("which one?"))
	for range 3 {
		requireShown(t, store, x)
		require.NoError(t, store.Erase(bg, content.Sum([]byte("the secret badger"))))
		for i := range 10 {
			newThread(t, store, lineage.ThreadOptions{}, lineage.User(fmt.Sprint("prompt ", i)))
		}
		require.NotContains(t, requireShown(t, store, x, y), "the secret badger")
		newThread(t, store, lineage.ThreadOptions{}, lineage.User("the secret badger"))
		require.Contains(t, requireShown(t, store, x, y), "the secret badger")
	}
}

// TestErasedMeanwhile erases a title while another handle reads it: what it adds does not stay.
func TestErasedMeanwhile(t *testing.T) {
	dir := t.TempDir()
	store, x := open(t, dir)
	_, y := open(t, dir)
	newThread(t, store, lineage.ThreadOptions{}, lineage.User("the secret badger"), lineage.Assistant("which one?"))
	all := listed(t, store)
	x.BeforeAdding(func() {
		x.BeforeAdding(nil)
		require.NoError(t, store.Erase(bg, content.Sum([]byte("the secret badger"))))
		requireShown(t, store, y)
	})
	_, err := x.Shown(bg, all)
	require.NoError(t, err)
	require.False(t, inFile(t, dir, "badger"))
	require.NotContains(t, requireShown(t, store, x, y), "the secret badger")
}

func TestMovedDirectory(t *testing.T) {
	derivedtest.Moved(t, func(store *lineage.Store, dir string) (derivedtest.Handle, error) {
		x, err := titles.Open(bg, store, dir)
		return updated{x}, err
	})
}

// updated is an index as a handle on derived data.
type updated struct{ *titles.Index }

func (u updated) Update(ctx context.Context) error {
	_, err := u.Shown(ctx, nil)
	return err
}
