package follow

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
)

// rolloutLines are the lines of a session of Codex with a base, if it has one, numbered from a number on.
func rolloutLines(id, base string, from int, said ...string) string {
	var b strings.Builder
	line := func(kind, payload string) {
		fmt.Fprintf(&b, `{"timestamp":"2026-11-28T00:00:%02dZ","ordinal":%d,"type":%q,"payload":%s}`+"\n", from, from, kind, payload)
		from++
	}
	line("session_meta", fmt.Sprintf(`{"id":%q,"cwd":"/w"%s}`, id, base))
	for i, text := range said {
		role := []string{"user", "assistant"}[i%2]
		line("response_item", fmt.Sprintf(`{"type":"message","role":%q,"content":[{"type":"text","text":%q}]}`, role, text))
		line("event_msg", `{"type":"task_started"}`)
	}
	return b.String()
}

// A session that was forked by reference has the messages of the other one up to there, which the store has once: also of one that was
// forked itself, was compressed or archived, or that follows while it grows. Without the file of the other one it begins where its own does.
func TestCodexHistoryBase(t *testing.T) {
	h, store := newHome(t), memory(t)
	file := func(day, id string) string {
		return h.path(".codex", "sessions", "2026", "11", day, "rollout-2026-11-"+day+"T00-00-00-"+id+".jsonl")
	}
	first := rolloutLines("aaaa", "", 0, "one", "two", "three", "four")
	upTo := strings.Index(first, `{"timestamp":"2026-11-28T00:00:05Z"`)
	h.write(t, file("27", "aaaa"), first)
	once(t, store, h.options())
	fork := rolloutLines("bbbb", fmt.Sprintf(`,"history_base":{"thread_id":"aaaa","end_ordinal_exclusive":5,"end_byte_offset":%d}`, upTo), 5, "other")
	h.write(t, file("28", "bbbb"), fork)
	once(t, store, h.options())
	h.write(t, file("28", "cccc"), rolloutLines("cccc", `,"history_base":{"thread_id":"bbbb","end_ordinal_exclusive":7}`, 7, "third"))
	h.write(t, file("28", "dddd"), rolloutLines("dddd", `,"history_base":{"thread_id":"gone"}`, 7, "alone"))
	h.write(t, file("28", "eeee"), rolloutLines("eeee", `,"history_base":{"thread_id":"ffff"}`, 7, "a"))
	h.write(t, file("28", "ffff"), rolloutLines("ffff", `,"history_base":{"thread_id":"eeee"}`, 7, "b"))
	once(t, store, h.options())

	history := func(id string) (texts string, spans []lineage.SpanRef) {
		thread, err := store.FindThread(t.Context(), id)
		require.NoError(t, err)
		active, err := thread.Active(t.Context())
		require.NoError(t, err)
		for e, err := range active.Entries(t.Context(), lineage.Window{}) {
			require.NoError(t, err)
			body, err := store.Original(t.Context(), e)
			require.NoError(t, err)
			texts += string(body[strings.Index(string(body), `"text","text":"`)+15:strings.Index(string(body), `"}]}`)]) + " "
			spans = append(spans, e.Span)
		}
		return texts, spans
	}
	check := func() {
		t.Helper()
		_, base := history("aaaa")
		texts, spans := history("bbbb")
		require.True(t, strings.HasPrefix(texts, "one two other "), texts)
		require.Equal(t, base[:2], spans[:2])
		texts, third := history("cccc")
		require.Equal(t, "one two other third ", texts)
		require.Equal(t, spans[:3], third[:3])
		texts, _ = history("dddd")
		require.Equal(t, "alone ", texts)
		texts, _ = history("eeee")
		require.Equal(t, "a ", texts)
	}
	check()
	for _, id := range []string{"bbbb", "cccc"} {
		s, err := FindSource(t.Context(), store, h.options().Machine.ID, file("28", id))
		require.NoError(t, err)
		var out strings.Builder
		require.NoError(t, s.Export(t.Context(), &out))
		raw, err := os.ReadFile(file("28", id))
		require.NoError(t, err)
		require.Equal(t, string(raw), out.String())
	}

	// The fork grows after the other file was compressed, and again when it is gone.
	z, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	h.write(t, file("27", "aaaa")+".zst", string(z.EncodeAll([]byte(first), nil)))
	require.NoError(t, os.Remove(file("27", "aaaa")))
	more := rolloutLines("x", "", 7, "five")
	h.append(t, file("28", "bbbb"), more[strings.Index(more, "\n")+1:])
	once(t, store, h.options())
	check()
	texts, _ := history("bbbb")
	require.Equal(t, "one two other five ", texts)
	require.NoError(t, os.Remove(file("27", "aaaa")+".zst"))
	more = rolloutLines("x", "", 9, "six")
	h.append(t, file("28", "bbbb"), more[strings.Index(more, "\n")+1:])
	once(t, store, h.options())
	texts, _ = history("bbbb")
	require.Equal(t, "one two other five six ", texts)
}

// A session whose beginning is not there yet is read again when it is: also in a later run, of one that waits for another one itself, and
// of one that has a part of it. Sessions that wait for each other do not go round.
func TestCodexHistoryBaseComesLater(t *testing.T) {
	h, store := newHome(t), memory(t)
	file := func(id string) string {
		return h.path(".codex", "sessions", "2026", "11", "28", "rollout-2026-11-28T00-00-00-"+id+".jsonl")
	}
	first := rolloutLines("aaaa", "", 0, "one", "two", "three")
	h.write(t, file("cccc"), rolloutLines("cccc", `,"history_base":{"thread_id":"bbbb","end_ordinal_exclusive":8}`, 8, "third"))
	h.write(t, file("bbbb"), rolloutLines("bbbb", `,"history_base":{"thread_id":"aaaa","end_ordinal_exclusive":5}`, 5, "other"))
	h.write(t, file("dddd"), rolloutLines("dddd", `,"history_base":{"thread_id":"eeee","end_ordinal_exclusive":99}`, 9, "round"))
	h.write(t, file("eeee"), rolloutLines("eeee", `,"history_base":{"thread_id":"dddd","end_ordinal_exclusive":99}`, 9, "again"))
	once(t, store, h.options())
	require.Equal(t, []int{1, 1}, []int{len(texts(t, store, "bbbb")), len(texts(t, store, "cccc"))})
	cut := strings.Index(first, `{"timestamp":"2026-11-28T00:00:03Z"`)
	h.write(t, file("aaaa"), first[:cut])
	once(t, store, h.options())
	require.Len(t, texts(t, store, "bbbb"), 1)
	h.append(t, file("aaaa"), first[cut:])
	once(t, store, h.options())
	require.Equal(t, []int{3, 4}, []int{len(texts(t, store, "bbbb")), len(texts(t, store, "cccc"))})
	for _, id := range []string{"aaaa", "bbbb", "cccc", "dddd"} {
		s, err := FindSource(t.Context(), store, h.options().Machine.ID, file(id))
		require.NoError(t, err)
		var out strings.Builder
		require.NoError(t, s.Export(t.Context(), &out))
		raw, err := os.ReadFile(file(id))
		require.NoError(t, err)
		require.Equal(t, string(raw), out.String())
	}
	for _, e := range once(t, store, h.options()) {
		require.NotEqual(t, Read, e.Kind, e.Path)
	}
}

// A beginning that the other file does not have in full, or that no regular file of the sessions has, is said to be missing.
func TestCodexHistoryBaseIsMissing(t *testing.T) {
	whole := rolloutLines("aaaa", "", 0, "one", "two")
	for name, c := range map[string]struct {
		base, raw, why string
		linked         bool
	}{
		"whole":            {base: fmt.Sprintf(`,"end_ordinal_exclusive":5,"end_byte_offset":%d`, len(whole)), raw: whole},
		"whole by numbers": {base: `,"end_ordinal_exclusive":5`, raw: whole},
		"short":            {base: `,"end_ordinal_exclusive":9`, raw: whole, why: "does not have that part"},
		"short in bytes":   {base: fmt.Sprintf(`,"end_byte_offset":%d`, len(whole)+1), raw: whole, why: "does not have that part"},
		"inside a line":    {base: fmt.Sprintf(`,"end_byte_offset":%d`, len(whole)-3), raw: whole, why: "does not have that part"},
		"no end":           {raw: whole, why: "does not have that part"},
		"another session":  {base: `,"end_ordinal_exclusive":5`, raw: rolloutLines("zzzz", "", 0, "one", "two"), why: "not found"},
		"a linked folder":  {base: `,"end_ordinal_exclusive":5`, raw: whole, linked: true, why: "not found"},
	} {
		t.Run(name, func(t *testing.T) {
			h, store := newHome(t), memory(t)
			day, elsewhere := h.path(".codex", "sessions", "2026", "11", "27"), h.path(".codex", "sessions", "2026", "11", "27")
			if c.linked {
				elsewhere = h.path("elsewhere")
			}
			h.write(t, elsewhere+"/rollout-2026-11-27T00-00-00-aaaa.jsonl", c.raw)
			path := h.path(".codex", "sessions", "2026", "11", "28", "rollout-2026-11-28T00-00-00-bbbb.jsonl")
			h.write(t, path, rolloutLines("bbbb", `,"history_base":{"thread_id":"aaaa"`+c.base+`}`, 9, "mine"))
			if c.linked {
				require.NoError(t, os.Symlink(elsewhere, day))
			}
			var said error
			for _, e := range once(t, store, h.options()) {
				if e.Path == path && e.Err != nil {
					said = e.Err
				}
			}
			if c.why == "" {
				require.NoError(t, said)
				require.Len(t, texts(t, store, "bbbb"), 3)
				return
			}
			require.ErrorContains(t, said, c.why)
			require.Len(t, texts(t, store, "bbbb"), 1)
		})
	}
}

// A session whose beginning is gone costs what is new, in later runs, too. It is read again from its start when a file with the beginning is
// there again, also one that has not changed since it was read.
func TestCodexHistoryBaseIsGone(t *testing.T) {
	h, store := newHome(t), memory(t)
	file := func(id string) string {
		return h.path(".codex", "sessions", "2026", "11", "28", "rollout-2026-11-28T00-00-00-"+id+".jsonl")
	}
	h.write(t, file("aaaa"), rolloutLines("aaaa", "", 0, "one", "two"))
	old := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(file("aaaa"), old, old))
	once(t, store, h.options())
	away := h.path("away")
	require.NoError(t, os.Rename(file("aaaa"), away))
	var said []string
	for i := range 100 {
		said = append(said, fmt.Sprint("message ", i))
	}
	h.write(t, file("bbbb"), rolloutLines("bbbb", `,"history_base":{"thread_id":"aaaa","end_ordinal_exclusive":5}`, 5, said...)+strings.Repeat("{not a record\n", 50)) // each is kept whole
	once(t, store, h.options())
	require.Len(t, texts(t, store, "bbbb"), 100)
	spans := func() uint64 {
		stats, err := store.Stats(t.Context())
		require.NoError(t, err)
		return stats.Spans
	}
	before := spans()
	for i := range 3 {
		more := rolloutLines("x", "", 300+10*i, fmt.Sprint("later ", i))
		h.append(t, file("bbbb"), more[strings.Index(more, "\n")+1:])
		once(t, store, h.options())
	}
	require.LessOrEqual(t, spans()-before, uint64(3*4))
	require.Len(t, texts(t, store, "bbbb"), 103)
	require.NoError(t, os.Rename(away, file("aaaa")))
	once(t, store, h.options())
	require.Len(t, texts(t, store, "bbbb"), 105)
	requireKept(t, store, file("bbbb"))
}
