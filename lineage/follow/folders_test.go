package follow

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
)

func TestFoldersThatAppearAndGo(t *testing.T) {
	h, store := newHome(t), memory(t)
	f := start(t, store, h.options())
	defer f.stop(t)
	for i := range 3 {
		id, name := session(i)
		path := h.path(".claude", "projects", "-new", name)
		h.write(t, path, line(id, "a", "", "user", "one"))
		f.await(t, func(e Event) bool { return e.Kind == Read && e.Path == path })
		if i == 1 {
			require.NoError(t, os.RemoveAll(h.path(".claude", "projects", "-new")))
		} else {
			require.NoError(t, os.RemoveAll(h.path(".claude")))
		}
		f.await(t, func(e Event) bool { return e.Kind == Gone && e.Path == path })
		require.Equal(t, []string{"one"}, texts(t, store, id), "the store keeps it")
	}
}

func TestLinksAreNotFollowed(t *testing.T) {
	h, store := newHome(t), memory(t)
	id, name := session(1)
	outside := h.path("outside", name)
	h.write(t, outside, line(id, "a", "", "user", "one"))
	require.NoError(t, os.MkdirAll(h.project(), 0o700))
	require.NoError(t, os.Symlink(outside, filepath.Join(h.project(), name)))
	require.NoError(t, os.Symlink(filepath.Dir(outside), h.path(".claude", "projects", "-linked")))
	failed := of(once(t, store, h.options()), Failed)
	require.Len(t, failed, 2)
	for _, e := range failed {
		require.ErrorIs(t, e.Err, archive.ErrRefused)
	}
	require.Nil(t, texts(t, store, id))

	// The user may have put the agent's folder elsewhere.
	require.NoError(t, os.Rename(h.path(".claude"), h.path("moved")))
	require.NoError(t, os.Symlink(h.path("moved"), h.path(".claude")))
	id, name = session(2)
	h.write(t, filepath.Join(h.project(), name), line(id, "a", "", "user", "one"))
	once(t, store, h.options())
	require.Equal(t, []string{"one"}, texts(t, store, id))
}

// A folder that is a link is reported once, by each of two followers that begin at the same time, and listed with what to do. Chosen, it is
// followed, and no problem.
func TestLinkIsReportedOnce(t *testing.T) {
	h, store := newHome(t), memory(t)
	id, name := session(1)
	h.write(t, h.path("outside", "-work", name), line(id, "a", "", "user", "one"))
	require.NoError(t, os.MkdirAll(h.project(), 0o700))
	link := h.path(".claude", "projects", "-linked")
	require.NoError(t, os.Symlink(h.path("outside", "-work"), link))
	require.NoError(t, os.Symlink(h.project(), h.path(".claude", "projects", "-again")))
	require.NoError(t, os.Symlink(h.path("nowhere"), h.path(".claude", "projects", "-nowhere")))
	runs := []*following{start(t, store, h.options()), start(t, store, h.options())}
	for _, f := range runs {
		f.stop(t)
		failed := of(f.all, Failed)
		require.LessOrEqual(t, len(failed), 1)
		for _, e := range failed {
			require.Equal(t, link, e.Path)
		}
	}
	require.Len(t, of(runs[0].all, Failed), 1)
	require.Empty(t, of(once(t, store, h.options()), Failed))
	listed := func(o Options) []Problem {
		all, err := List(t.Context(), store, o)
		require.NoError(t, err)
		return all[0].Problems
	}
	require.Len(t, listed(h.options()), 1)
	require.Contains(t, listed(h.options())[0].Error, "--from "+h.path("outside", "-work"))

	chosen := h.options()
	chosen.From = []string{h.path("outside")}
	require.Empty(t, listed(chosen))
	require.Empty(t, of(once(t, store, chosen), Failed))
	require.Equal(t, []string{"one"}, texts(t, store, id))
	require.Len(t, of(once(t, store, h.options()), Failed), 1, "it is no longer chosen")
	require.NoError(t, os.Remove(link))
	require.Empty(t, of(once(t, store, h.options()), Failed))
	require.NoError(t, os.Symlink(h.path("outside", "-work"), link))
	require.Len(t, of(once(t, store, h.options()), Failed), 1, "it is another link")
}

// Followers of different agents keep the errors of each other's folders.
func TestFollowersKeepErrorsOfFolders(t *testing.T) {
	h, store := newHome(t), memory(t)
	folders := map[string]string{"claude-code": h.path(".claude", "projects"), "pi": h.path(".pi", "agent", "sessions")}
	require.NoError(t, os.MkdirAll(h.path("outside"), 0o700))
	var runs []*following
	for agent, folder := range folders {
		require.NoError(t, os.MkdirAll(folder, 0o700))
		require.NoError(t, os.Symlink(h.path("outside"), filepath.Join(folder, "link")))
		o := h.options()
		o.Agents = []string{agent}
		runs = append(runs, start(t, store, o))
	}
	for _, f := range runs {
		f.stop(t)
		require.Len(t, of(f.all, Failed), 1)
	}
	require.Empty(t, of(once(t, store, h.options()), Failed))
	require.NoError(t, os.Remove(filepath.Join(folders["pi"], "link")))
	once(t, store, h.options())
	errs, err := keptFor(store, h.options().Machine).folderErrors(t.Context())
	require.NoError(t, err)
	require.Len(t, errs, 1)
	require.Contains(t, errs, filepath.Join(folders["claude-code"], "link"))
}

// A folder that cannot be read is reported again if it could be read in between.
func TestFolderFailsAgain(t *testing.T) {
	if os.Geteuid() <= 0 {
		t.Skip("root and Windows read every folder")
	}
	h, store := newHome(t), memory(t)
	id, name := session(1)
	h.write(t, filepath.Join(h.project(), name), line(id, "a", "", "user", "one"))
	other := h.path(".claude", "projects", "-other")
	require.NoError(t, os.Mkdir(other, 0o700))
	f := start(t, store, h.options())
	for range 2 {
		require.NoError(t, os.Chmod(other, 0))
		f.await(t, func(e Event) bool { return e.Kind == Failed && e.Path == other })
		require.NoError(t, os.Chmod(other, 0o700))
		h.caughtUp(t, f)
	}
	f.stop(t)
}

// failing is a notifier that can watch some folders only.
type failing struct {
	notifier
	mu   sync.Mutex
	left int
	lose bool
}

func (f *failing) add(dir string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left--; f.left < 0 {
		return errors.New("no more watches")
	}
	return f.notifier.add(dir)
}

func (f *failing) take() ([]string, bool) {
	paths, lost := f.notifier.take()
	return paths, lost || f.lose && len(paths) > 0
}

func TestFoldersBeyondTheLimitOfWatchesArePolled(t *testing.T) {
	h, store, clock := newHome(t), memory(t), newClock()
	o := h.options()
	o.Clock = clock
	o.Agents = []string{"claude-code"}
	limited := &failing{left: 1}
	o.watch = func() (notifier, error) {
		got, err := newNotifier()
		limited.notifier = got
		return limited, err
	}
	id, name := session(1)
	path := filepath.Join(h.project(), name)
	h.write(t, path, line(id, "a", "", "user", "one"))
	f := start(t, store, o)
	defer f.stop(t)
	var slow []Event
	for _, e := range f.all {
		if e.Kind == Slow {
			slow = append(slow, e)
		}
	}
	require.Len(t, slow, 1, "said once")
	h.append(t, path, line(id, "b", "a", "assistant", "two"))
	f.pollUntil(t, clock, func(e Event) bool { return e.Kind == Read && e.Messages == 1 })
	require.Equal(t, []string{"one", "two"}, texts(t, store, id))
	other, name := session(2)
	h.write(t, filepath.Join(h.project(), name), line(other, "a", "", "user", "one"))
	f.pollUntil(t, clock, func(e Event) bool { return e.Kind == Read && slices.Contains(e.Conversations, other) })
	require.Equal(t, []string{"one"}, texts(t, store, other))
}

func TestWithoutReportsOfChangesEverythingIsPolled(t *testing.T) {
	h, store, clock := newHome(t), memory(t), newClock()
	o := h.options()
	o.Clock, o.Agents = clock, []string{"claude-code"}
	o.watch = func() (notifier, error) { return nil, errors.New("no notifications here") }
	f := start(t, store, o)
	defer f.stop(t)
	id, name := session(1)
	h.write(t, filepath.Join(h.project(), name), line(id, "a", "", "user", "one"))
	f.pollUntil(t, clock, func(e Event) bool { return e.Kind == Read && e.Messages == 1 })
	require.Equal(t, []string{"one"}, texts(t, store, id))
}

func TestLostReportsAreMadeUpFor(t *testing.T) {
	h, store := newHome(t), memory(t)
	o := h.options()
	o.watch = func() (notifier, error) {
		got, err := newNotifier()
		return &failing{notifier: got, left: 1 << 30, lose: true}, err
	}
	id, name := session(1)
	path := filepath.Join(h.project(), name)
	h.write(t, path, line(id, "a", "", "user", "one"))
	f := start(t, store, o)
	defer f.stop(t)
	h.append(t, path, line(id, "b", "a", "assistant", "two"))
	h.caughtUp(t, f)
	require.Equal(t, []string{"one", "two"}, texts(t, store, id))
}

// The folder of a profile of OpenClaw may be a link, and two names of a profile are one. What is below it may not be a link.
func TestLinkedProfile(t *testing.T) {
	h, store := newHome(t), memory(t)
	file := func(i int, below ...string) string {
		id := fmt.Sprintf("%08d-0000-4000-8000-000000000000", i)
		text := `{"type":"session","version":3,"id":"` + id + `","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}` + "\n" +
			`{"type":"message","id":"m1","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"one"}}` + "\n"
		h.write(t, filepath.Join(append([]string{h.dir}, append(below, id+".jsonl")...)...), text)
		return id
	}
	moved := file(1, "moved", "agents", "main", "sessions")
	outside := file(2, "outside", "sessions")
	require.NoError(t, os.Symlink(h.path("moved"), h.path(".openclaw-work")))
	require.NoError(t, os.Symlink(h.path("moved"), h.path(".openclaw-work2")))
	require.NoError(t, os.Symlink(h.path("outside"), h.path("moved", "agents", "out")))
	require.NoError(t, os.Symlink(h.path("gone"), h.path(".openclaw-gone")))
	events := once(t, store, h.options())
	require.Len(t, of(events, Read), 1)
	for _, e := range of(events, Failed) {
		require.ErrorIs(t, e.Err, archive.ErrRefused)
	}
	require.NotEmpty(t, of(events, Failed))
	_, err := store.FindThread(t.Context(), moved)
	require.NoError(t, err)
	_, err = store.FindThread(t.Context(), outside)
	require.ErrorIs(t, err, lineage.ErrNotFound)
}
