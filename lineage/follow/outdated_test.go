package follow

import (
	"context"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/formats"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// earlier returns the formats as of a version that did not know titles of Claude Code.
func earlier() []archive.Format {
	return earlierOf("claude-code", func(c *archive.Conversation) { c.Title = "" })
}

// earlierOf returns the formats as of the first version of a reader, which did not know something of a conversation.
func earlierOf(format string, forget func(c *archive.Conversation)) []archive.Format {
	all := formats.All()
	for i := range all {
		if all[i].Name != format {
			continue
		}
		read := all[i].Read
		all[i].Version = 0
		all[i].Read = func(ctx context.Context, in *archive.Input) iter.Seq2[*archive.Conversation, error] {
			return func(yield func(*archive.Conversation, error) bool) {
				for c, err := range read(ctx, in) {
					if err == nil {
						forget(c)
					}
					if !yield(c, err) {
						return
					}
				}
			}
		}
	}
	return all
}

// Sessions that an earlier version has read get what a later one knows, also if their files are gone, once, and also from two followers
// that begin at the same time. Messages are not added again, a title that somebody has set stays, and so does a deleted thread.
func TestSessionsOfAnEarlierVersion(t *testing.T) {
	h, store := newHome(t), memory(t)
	titled := func(n int) (id, path string) {
		id, name := session(n)
		path = filepath.Join(h.project(), name)
		h.write(t, path, line(id, "a"+id, "", "user", "one")+line(id, "b"+id, "a"+id, "assistant", "two")+
			`{"type":"ai-title","aiTitle":"The title","sessionId":"`+id+`"}`+"\n"+line(id, "c"+id, "b"+id, "user", "three"))
		return id, path
	}
	there, grows := titled(1)
	gone, lost := titled(2)
	named, _ := titled(3)
	deleted, _ := titled(4)
	old := h.options()
	old.Formats = earlier()
	once(t, store, old)
	title := func(id string) string {
		thread, err := store.FindThread(t.Context(), id)
		require.NoError(t, err)
		info, err := thread.Info(t.Context())
		require.NoError(t, err)
		return info.Title
	}
	require.NotEqual(t, "The title", title(there))
	require.NoError(t, os.Remove(lost))
	thread, err := store.FindThread(t.Context(), named)
	require.NoError(t, err)
	require.NoError(t, thread.Update(t.Context(), func(i *lineage.ThreadInfo) error { i.Title = "Mine"; return nil }))
	thread, err = store.FindThread(t.Context(), deleted)
	require.NoError(t, err)
	require.NoError(t, thread.Delete(t.Context()))
	before, err := store.Stats(t.Context())
	require.NoError(t, err)

	done := make(chan error, 2)
	for range 2 {
		go func() {
			o := h.options()
			o.Once = true
			done <- Run(context.Background(), store, o)
		}()
	}
	require.NoError(t, <-done)
	require.NoError(t, <-done)
	for _, id := range []string{there, gone} {
		require.Equal(t, "The title", title(id))
		require.Equal(t, []string{"one", "two", "three"}, texts(t, store, id))
		onlyBranch(t, store, id)
	}
	require.Equal(t, "Mine", title(named))
	require.Nil(t, texts(t, store, deleted))
	after, err := store.Stats(t.Context())
	require.NoError(t, err)
	require.Equal(t, before.Spans, after.Spans)
	source, err := FindSource(t.Context(), store, old.Machine.ID, lost)
	require.NoError(t, err)
	require.NoError(t, source.Export(t.Context(), new(strings.Builder)))

	head := func() backend.Cursor {
		c, err := store.View().Head(t.Context())
		require.NoError(t, err)
		return c
	}
	settled := head()
	once(t, store, h.options())
	require.Equal(t, settled, head(), "they are read once")
	h.append(t, grows, line(there, "d", "c"+there, "assistant", "four"))
	once(t, store, h.options())
	require.Equal(t, []string{"one", "two", "three", "four"}, texts(t, store, there))

	// A part that was erased is no reason to fail.
	other := memory(t)
	once(t, other, old)
	thread, err = other.FindThread(t.Context(), there)
	require.NoError(t, err)
	main, err := thread.Active(t.Context())
	require.NoError(t, err)
	for e, err := range main.Entries(t.Context(), lineage.Window{}) {
		require.NoError(t, err)
		require.NoError(t, other.Erase(t.Context(), e.Content))
		break
	}
	require.Empty(t, of(once(t, other, h.options()), Failed))
	require.Empty(t, of(once(t, other, h.options()), Reading))
}

// The states of sessions that are read again are saved on the way, so that a follower that is killed does not begin again.
func TestSessionsOfAnEarlierVersionAreSaved(t *testing.T) {
	h, store := newHome(t), memory(t)
	for n := range saveMost + 10 {
		id, name := session(n)
		h.write(t, filepath.Join(h.project(), name), line(id, "a", "", "user", "one"))
	}
	o := h.options()
	o.Formats = earlier()
	once(t, store, o)
	saved := 0
	o = h.options()
	o.Once = true
	o.Events = func(e Event) {
		if e.Kind != Waiting {
			return
		}
		states, err := keptFor(store, o.Machine).states(t.Context())
		require.NoError(t, err)
		for _, s := range states {
			saved += s.Reader
		}
	}
	require.NoError(t, Run(t.Context(), store, o))
	require.Equal(t, saveMost, saved)
}

// failingReads is an engine that does not find contexts while fails is set, and takes no commits while full is set.
type failingReads struct {
	fullDisk
	fails *atomic.Bool
}

func (e failingReads) Context(ctx context.Context, id structure.ContextID) (backend.Context, error) {
	if e.fails.Load() {
		return backend.Context{}, syscall.ECONNRESET
	}
	return e.Engine.Context(ctx, id)
}

// A session of an earlier version that cannot be read again because the store fails is read again later.
func TestStoreFailsWithSessionsOfAnEarlierVersion(t *testing.T) {
	h := newHome(t)
	engine := failingReads{fullDisk{write.Of(memory(t)).Engine(), new(atomic.Bool), new(atomic.Int64)}, new(atomic.Bool)}
	store := lineage.New(engine)
	id, name := session(1)
	h.write(t, filepath.Join(h.project(), name), line(id, "a", "", "user", "one")+`{"type":"ai-title","aiTitle":"The title","sessionId":"`+id+`"}`+"\n")
	o := h.options()
	o.Formats = earlier()
	once(t, store, o)
	o = h.options()
	o.Once = true
	engine.fails.Store(true)
	require.NoError(t, Run(t.Context(), store, o), "the store takes changes")
	engine.full.Store(true)
	require.ErrorIs(t, Run(t.Context(), store, o), syscall.ECONNRESET)
	engine.full.Store(false)
	engine.fails.Store(false)
	once(t, store, h.options())
	thread, err := store.FindThread(t.Context(), id)
	require.NoError(t, err)
	info, err := thread.Info(t.Context())
	require.NoError(t, err)
	require.Equal(t, "The title", info.Title)
}

// A compressed session that an earlier version has read is read again once, like the plain file that it replaces, also if it is gone.
func TestCompressedSessionsOfAnEarlierVersion(t *testing.T) {
	h, store := newHome(t), memory(t)
	z, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	defer z.Close()
	path := func(id string) string { return h.path(".codex", "sessions", "2026", "rollout-"+id+".jsonl.zst") }
	ids := []string{"there", "gone"}
	for _, id := range ids {
		h.write(t, path(id), string(z.EncodeAll([]byte(`{"timestamp":"2026-11-27T10:00:00Z","type":"session_meta","payload":{"id":"`+id+`","cwd":"/src/app"}}
{"timestamp":"2026-11-27T10:00:01Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"one"}]}}
`), nil)))
	}
	o := h.options()
	o.Formats = earlierOf("codex", func(c *archive.Conversation) { c.Metadata = nil })
	once(t, store, o)
	require.NoError(t, os.Remove(path("gone")))
	metadata := func(id string) string {
		thread, err := store.FindThread(t.Context(), id)
		require.NoError(t, err)
		info, err := thread.Info(t.Context())
		require.NoError(t, err)
		return string(info.Metadata)
	}
	o = h.options()
	o.Formats = formats.All()
	o.Formats[slices.IndexFunc(o.Formats, func(f archive.Format) bool { return f.Name == "codex" })].Version = 1
	for _, id := range ids {
		require.NotContains(t, metadata(id), "/src/app")
	}
	once(t, store, o)
	for _, id := range ids {
		require.Contains(t, metadata(id), "/src/app")
		require.Len(t, texts(t, store, id), 1)
	}
	require.Empty(t, of(once(t, store, o), Reading), "they are read once")
}
