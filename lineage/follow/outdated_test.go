package follow

import (
	"context"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/formats"
	"github.com/lineage-store/lineage/lineage/backend"
)

// earlier returns the formats as of a version that did not know titles of Claude Code.
func earlier() []archive.Format {
	all := formats.All()
	for i := range all {
		if all[i].Name != "claude-code" {
			continue
		}
		read := all[i].Read
		all[i].Version = 0
		all[i].Read = func(ctx context.Context, in *archive.Input) iter.Seq2[*archive.Conversation, error] {
			return func(yield func(*archive.Conversation, error) bool) {
				for c, err := range read(ctx, in) {
					if err == nil {
						c.Title = ""
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
		thread, err := store.FindThread(t.Context(), id)
		require.NoError(t, err)
		branches, err := thread.Branches(t.Context())
		require.NoError(t, err)
		require.Len(t, branches, 1)
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
