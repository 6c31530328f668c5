//test:long

package search_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/chat/chattest"
	"github.com/lineage-store/lineage/lineage/search"
)

var bg = context.Background()

// TestChats runs the chat tests on an embedded store with search.
func TestChats(t *testing.T) { chats(t, chattest.RunSequential) }

// TestConformance runs what the suite does from many goroutines, and random calls, under the race detector.
func TestConformance(t *testing.T) {
	campaign.Long(t)
	chats(t, chattest.RunConcurrent)
}

func chats(t *testing.T, run func(*testing.T, chattest.Config)) {
	run(t, chattest.Config{Search: true, LongChain: 10_500, New: func(t testing.TB) chattest.OpenFunc {
		dir := filepath.Join(t.TempDir(), "store")
		return func(ctx context.Context) (chat.Store, func() error, error) {
			store, err := lineage.Open(ctx, dir, lineage.Options{Durability: lineage.Normal})
			if err != nil {
				return nil, nil, err
			}
			x, err := search.Open(ctx, store, dir, search.Options{})
			if err != nil {
				store.Close()
				return nil, nil, err
			}
			return chattest.Repeating(x.Chats(), store), func() error {
				if err := x.Close(); err != nil {
					return err
				}
				return store.Close()
			}, nil
		}
	}})
}

func open(t testing.TB, dir string) (*lineage.Store, *search.Index) {
	store, err := lineage.Open(bg, dir, lineage.Options{Durability: lineage.Normal})
	require.NoError(t, err)
	x, err := search.Open(bg, store, dir, search.Options{})
	require.NoError(t, err)
	return store, x
}

func found(t testing.TB, x *search.Index, query string) []string {
	results, err := x.Search(bg, search.Query{Text: query})
	require.NoError(t, err)
	texts := []string{}
	for _, r := range results {
		texts = append(texts, r.Snippet)
	}
	return texts
}

func TestFollowsTheStore(t *testing.T) {
	dir := t.TempDir()
	store, x := open(t, dir)
	require.Empty(t, found(t, x, "aardvark"))
	thread, err := store.CreateThread(bg, lineage.ThreadOptions{UserID: "ada"})
	require.NoError(t, err)
	c, err := thread.Active(bg)
	require.NoError(t, err)
	_, err = c.Extend(bg, lineage.User("an aardvark"), lineage.Assistant("a badger"))
	require.NoError(t, err)
	require.Equal(t, []string{"an <mark>aardvark</mark>"}, found(t, x, "aardvark"))
	others, err := x.Search(bg, search.Query{Text: "aardvark", User: "bob"})
	require.NoError(t, err)
	require.Empty(t, others)

	info, err := os.Stat(filepath.Join(dir, search.FileName))
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode().Perm())

	entries, err := c.All(bg)
	require.NoError(t, err)
	require.NoError(t, store.Erase(bg, entries[0].Content))
	require.Empty(t, found(t, x, "aardvark"))
	require.NoError(t, thread.Delete(bg))
	require.Empty(t, found(t, x, "badger"))
	require.NoError(t, x.Close())
	_, err = x.Search(bg, search.Query{Text: "badger"})
	require.ErrorIs(t, err, lineage.ErrClosed)
	require.NoError(t, store.Close())
}

// TestDamagedIndexIsRebuilt damages the index in every way that can occur.
func TestDamagedIndexIsRebuilt(t *testing.T) {
	dir := t.TempDir()
	store, x := open(t, dir)
	thread, err := store.CreateThread(bg, lineage.ThreadOptions{UserID: "ada"})
	require.NoError(t, err)
	c, err := thread.Active(bg)
	require.NoError(t, err)
	for i := range 200 {
		_, err = c.Extend(bg, lineage.User(fmt.Sprintf("aardvark number %d", i)))
		require.NoError(t, err)
	}
	require.Len(t, found(t, x, "aardvark"), 20)
	require.NoError(t, x.Close())
	require.NoError(t, store.Close())
	path := filepath.Join(dir, search.FileName)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)

	other := t.TempDir()
	otherStore, otherIndex := open(t, other)
	require.NoError(t, otherIndex.Update(bg))
	_, err = otherStore.CreateThread(bg, lineage.ThreadOptions{})
	require.NoError(t, err)
	require.NoError(t, otherIndex.Update(bg))
	require.NoError(t, otherIndex.Close())
	require.NoError(t, otherStore.Close())
	others, err := os.ReadFile(filepath.Join(other, search.FileName))
	require.NoError(t, err)

	holes := append([]byte(nil), whole...)
	for i := 4096; i < len(holes); i += 4096 {
		copy(holes[i:], "nothing that was ever here")
	}
	for name, content := range map[string][]byte{
		"gone": nil, "empty": {}, "no database": []byte("this is no database at all"), "cut short": whole[:len(whole)/2], "holes": holes, "another store's": others,
	} {
		t.Run(name, func(t *testing.T) {
			for _, suffix := range []string{"", "-wal", "-shm"} {
				_ = os.Remove(path + suffix)
			}
			if content != nil {
				require.NoError(t, os.WriteFile(path, content, 0o600))
			}
			store, x := open(t, dir)
			c, err := store.Context(bg, c.ID())
			require.NoError(t, err)
			_, err = c.Extend(bg, lineage.User("something new: "+name))
			require.NoError(t, err)
			require.Len(t, found(t, x, "new"), 1)
			require.Len(t, found(t, x, "aardvark"), 20)
			require.NoError(t, x.Close())
			require.NoError(t, store.Close())
			thread, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NotEmpty(t, thread)
			// Revert for the next case.
			require.NoError(t, undo(dir, c.ID()))
		})
	}
}

// undo removes the last message.
func undo(dir string, id lineage.ContextID) error {
	store, err := lineage.Open(bg, dir, lineage.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	c, err := store.Context(bg, id)
	if err != nil {
		return err
	}
	entries, err := c.Last(bg, 2)
	if err != nil {
		return err
	}
	return c.MoveTo(bg, entries[0].Span, "undo")
}

func TestSearchesWhileOthersWrite(t *testing.T) {
	dir := t.TempDir()
	store, x := open(t, dir)
	thread, err := store.CreateThread(bg, lineage.ThreadOptions{UserID: "ada"})
	require.NoError(t, err)
	c, err := thread.Active(bg)
	require.NoError(t, err)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 20 {
				word := fmt.Sprintf("word%dx%d", w, i)
				_, err := c.Extend(bg, lineage.User(word))
				if err != nil {
					t.Error(err)
					return
				}
				results, err := x.Search(bg, search.Query{Text: word})
				if err != nil || len(results) != 1 {
					t.Errorf("%s: %d results, %v", word, len(results), err)
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, x.Close())
	require.NoError(t, store.Close())
}

// The index of a store that lost commits, or of a copy with a different continuation, finds only
// what the store has.
func TestFindsNothingOfAnotherHistory(t *testing.T) {
	room := t.TempDir()
	dir, restored := filepath.Join(room, "store"), filepath.Join(room, "restored")
	store, x := open(t, dir)
	say := func(store *lineage.Store, texts ...string) {
		for _, text := range texts {
			thread, err := store.CreateThread(bg, lineage.ThreadOptions{UserID: "ada"})
			require.NoError(t, err)
			c, err := thread.Active(bg)
			require.NoError(t, err)
			_, err = c.Extend(bg, lineage.User(text))
			require.NoError(t, err)
		}
	}
	say(store, "the walrus that both have")
	_, err := store.Backup(bg, filepath.Join(room, "backup"), lineage.BackupOptions{})
	require.NoError(t, err)
	say(store, "the walrus of the original", "and its penguin")
	require.Len(t, found(t, x, "walrus"), 2)
	require.NoError(t, x.Close())
	require.NoError(t, store.Close())
	_, err = lineage.Restore(bg, filepath.Join(room, "backup"), restored, lineage.RestoreOptions{})
	require.NoError(t, err)
	for _, texts := range [][]string{nil, {"a walrus of the copy", "another walrus of the copy"}, {"and one more walrus"}} {
		b, err := os.ReadFile(filepath.Join(dir, search.FileName)) // what the original had
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(restored, search.FileName), b, 0o600))
		store, x := open(t, restored)
		say(store, texts...)
		all := found(t, x, "walrus")
		for _, text := range all {
			require.NotContains(t, text, "original")
		}
		require.Empty(t, found(t, x, "penguin"))
		stats, err := store.Stats(bg)
		require.NoError(t, err)
		require.Len(t, all, int(stats.Spans))
		require.NoError(t, x.Close())
		require.NoError(t, store.Close())
	}
}

// TestFileIsReplaced runs a collection through another handle, which removes the file: the index
// must not continue to use the removed one.
func TestFileIsReplaced(t *testing.T) {
	dir := t.TempDir()
	store, x := open(t, dir)
	defer store.Close()
	defer x.Close()
	thread, err := store.CreateThread(bg, lineage.ThreadOptions{})
	require.NoError(t, err)
	c, err := thread.Active(bg)
	require.NoError(t, err)
	_, err = c.Extend(bg, lineage.User("an aardvark"), lineage.User("a secret badger"))
	require.NoError(t, err)
	require.Len(t, found(t, x, "badger"), 1)

	other, err := lineage.Open(bg, dir, lineage.Options{})
	require.NoError(t, err)
	defer other.Close()
	require.NoError(t, other.Erase(bg, content.Sum([]byte("a secret badger"))))
	report, err := other.Collect(bg, lineage.CollectOptions{})
	require.NoError(t, err)
	require.Contains(t, report.Removed, search.FileName)
	require.NoFileExists(t, filepath.Join(dir, search.FileName))

	require.Empty(t, found(t, x, "badger"))
	require.Len(t, found(t, x, "aardvark"), 1)
	b, err := os.ReadFile(filepath.Join(dir, search.FileName))
	require.NoError(t, err, "the index is under its name again")
	require.NotContains(t, string(b), "badger")
}

// TestSize requires that the index of texts of 500 bytes is smaller than the texts, however often
// they are used.
func TestSize(t *testing.T) {
	dir := t.TempDir()
	store, x := open(t, dir)
	defer store.Close()
	defer x.Close()
	random := rand.New(rand.NewPCG(1, 2))
	var words []string
	for range 5_000 {
		words = append(words, fmt.Sprintf("%x", random.Uint32N(1<<(4+random.Uint32N(20)))))
	}
	distinct := int64(0)
	for range 20 {
		thread, err := store.CreateThread(bg, lineage.ThreadOptions{UserID: "ada"})
		require.NoError(t, err)
		c, err := thread.Active(bg)
		require.NoError(t, err)
		system := lineage.System(strings.Repeat("the same in all threads ", 400))
		items := []lineage.Item{system}
		for range 100 {
			text := ""
			for len(text) < 500 {
				text += words[int(float64(len(words))*math.Pow(random.Float64(), 3))] + " "
			}
			items = append(items, lineage.User(text))
			distinct += int64(len(text))
		}
		_, err = c.Extend(bg, items...)
		require.NoError(t, err)
	}
	require.NoError(t, x.Update(bg))
	require.NoError(t, x.Close())
	got, err := os.Stat(filepath.Join(dir, search.FileName))
	require.NoError(t, err)
	t.Logf("%d bytes for %d of text", got.Size(), distinct)
	require.Less(t, got.Size(), distinct)
}
