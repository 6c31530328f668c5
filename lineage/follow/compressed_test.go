package follow

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
)

// A compressed session is recorded as the plain file that it replaces: also one that was never read before, and what was
// added to the plain file after it was read for the last time.
func TestCompressedFilesAreRecorded(t *testing.T) {
	h, store := newHome(t), memory(t)
	z, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	defer z.Close()
	text := func(id string, said ...string) string {
		var b strings.Builder
		fmt.Fprintf(&b, `{"timestamp":"2026-11-27T10:00:00Z","type":"session_meta","payload":{"id":%q,"cwd":"/src/app"}}`+"\n", id)
		for i, s := range said {
			fmt.Fprintf(&b, `{"timestamp":"2026-11-27T10:00:%02dZ","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":%q}]}}`+"\n", i+1, s)
		}
		return b.String()
	}
	path := func(id string) string {
		return h.path(".codex", "sessions", "2026", "11", "27", "rollout-"+id+".jsonl")
	}
	age := func(path string) { // its time is reliable
		then := time.Now().Add(-time.Hour)
		require.NoError(t, os.Chtimes(path, then, then))
	}
	compress := func(id, plain string) {
		h.write(t, path(id)+".zst", string(z.EncodeAll([]byte(plain), nil)))
		age(path(id) + ".zst")
		require.NoError(t, os.RemoveAll(path(id)))
	}
	requireFile := func(id, want string) {
		t.Helper()
		s, err := FindSource(t.Context(), store, h.options().Machine.ID, path(id))
		require.NoError(t, err)
		var b bytes.Buffer
		require.NoError(t, s.Export(t.Context(), &b))
		require.Equal(t, want, b.String())
	}

	h.write(t, path("s1"), text("s1", "one"))
	once(t, store, h.options())
	compress("s1", text("s1", "one", "two"))                              // two was never seen in the plain file
	compress("s2", strings.TrimSuffix(text("s2", "three", "four"), "\n")) // never read before
	once(t, store, h.options())
	require.Equal(t, []string{"one", "two"}, texts(t, store, "s1"))
	requireFile("s1", text("s1", "one", "two"))
	require.Equal(t, []string{"three", "four"}, texts(t, store, "s2"))
	requireFile("s2", strings.TrimSuffix(text("s2", "three", "four"), "\n"))
	require.Empty(t, of(once(t, store, h.options()), Read), "it is not read again")

	// It continues as a plain file.
	h.write(t, path("s1"), text("s1", "one", "two", "five"))
	require.NoError(t, os.Remove(path("s1")+".zst"))
	once(t, store, h.options())
	require.Equal(t, []string{"one", "two", "five"}, texts(t, store, "s1"))
	requireFile("s1", text("s1", "one", "two", "five"))

	// A part of a compressed file, as a copy that was interrupted leaves it, changes nothing.
	whole := z.EncodeAll([]byte(text("s1", "one", "two", "five", "six")), nil)
	h.write(t, path("s1")+".zst", string(whole[:len(whole)/2]))
	require.NoError(t, os.Remove(path("s1")))
	once(t, store, h.options())
	requireFile("s1", text("s1", "one", "two", "five"))
	h.write(t, path("s1")+".zst", string(whole))
	once(t, store, h.options())
	requireFile("s1", text("s1", "one", "two", "five", "six"))

	// When both are deleted, only the store has them.
	kept, err := OnlyKept(t.Context(), store, h.options().Machine)
	require.NoError(t, err)
	require.Empty(t, kept)
	require.NoError(t, os.Remove(path("s1")+".zst"))
	once(t, store, h.options())
	kept, err = OnlyKept(t.Context(), store, h.options().Machine)
	require.NoError(t, err)
	require.Contains(t, kept, "s1")

	// What expands too much is not recorded.
	h.write(t, path("s3")+".zst", string(z.EncodeAll([]byte(text("s3", "seven")+strings.Repeat("\n", 1<<20)), nil)))
	once(t, store, h.options())
	_, err = FindSource(t.Context(), store, h.options().Machine.ID, path("s3"))
	require.ErrorIs(t, err, lineage.ErrNotFound)
}
