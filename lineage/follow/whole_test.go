package follow

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// FuzzParts requires that the parts of a file are the file, in any form, without taking long.
func FuzzParts(f *testing.F) {
	for _, seed := range []string{
		``, ` `, "\xef\xbb\xbf{}", `{"a":1} x`, "{\"a\":[1,2]}\n\n[3]", strings.Repeat("[", 5000) + strings.Repeat("]", 5000), `[` + strings.Repeat("1,", 20_000) + `1]`,
		` { "messages" : [` + strings.Repeat(` {"text":"`+strings.Repeat("x", 200)+`"} ,`, 100) + "{}\r\n ] } \n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, lines := range []bool{false, true} {
			var joined []byte
			n := 0
			for part := range parts(raw, lines) {
				require.NotEmpty(t, part)
				joined = append(joined, part...)
				n++
			}
			require.Equal(t, string(raw), string(joined))
			require.LessOrEqual(t, n, 3*(1+bytes.Count(raw, []byte("\n")))+2*partLevels*len(raw)/leastPart)
		}
	})
}

// geminiSession returns a session of Gemini CLI that is one object, as old versions wrote them.
func geminiSession(id string, said ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "{\n  \"sessionId\": %q,\n  \"projectHash\": \"p\",\n  \"startTime\": \"2026-01-01T00:00:00.000Z\",\n  \"lastUpdated\": \"2026-01-01T00:00:00.000Z\",\n  \"messages\": [", id)
	for i, text := range said {
		kind := [2]string{"user", "gemini"}[i%2]
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, "\n    {\n      \"id\": \"%s-%d\",\n      \"timestamp\": \"2026-01-01T00:00:%02d.000Z\",\n      \"type\": %q,\n      \"content\": %q\n    }", id, i, i%60, kind, text)
	}
	return b.String() + "\n  ]\n}"
}

// requireKept requires that a file comes back.
func requireKept(t tester, store *lineage.Store, path string) {
	t.Helper()
	s, err := FindSource(bg, store, strings.Repeat("ab", machineSize), path)
	require.NoError(t, err)
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, s.Export(bg, &out))
	require.Equal(t, string(raw), out.String())
}

// Session files that are imported whole come back byte for byte as they were read last, whether they are rewritten or grow. Two
// sessions with equal ids of messages have their own files.
func TestWholeFilesComeBack(t *testing.T) {
	h, store := newHome(t), memory(t)
	chats := h.path(".gemini", "tmp", "p", "chats")
	gemini, second := chats+"/session-1.json", chats+"/session-2.json"
	var said []string
	for i := range 200 {
		said = append(said, fmt.Sprintf("%d %s \t", i, strings.Repeat("words ", 30)))
	}
	vscode := h.path(".config", "Code", "User", "workspaceStorage", "w", "chatSessions")
	sample := func(name string) string {
		raw, err := os.ReadFile("../archive/testdata/agents/vscode/" + name)
		require.NoError(t, err)
		return string(raw)
	}
	const log, whole = "8e5c4a9e-0000-4000-8000-000000000001.jsonl", "8e5c4a9e-0000-4000-8000-000000000002.json"
	h.write(t, gemini, geminiSession("s1", said[:100]...))
	h.write(t, second, strings.ReplaceAll(geminiSession("s2", "mine", "yours"), "s2-", "s1-"))
	lines := strings.SplitAfter(sample(log), "\n")
	h.write(t, vscode+"/"+log, strings.Join(lines[:2], ""))
	h.write(t, vscode+"/"+whole, "\r\n"+sample(whole)+" \n")
	paths := []string{gemini, second, vscode + "/" + log, vscode + "/" + whole}
	for _, e := range once(t, store, h.options()) {
		require.NoError(t, e.Err, e.Path)
	}
	for _, path := range paths {
		requireKept(t, store, path)
	}
	h.write(t, gemini, geminiSession("s1", said...))
	h.write(t, second, `{"sessionId":"s2","messages":[{"id":"s1-0","type":"user","content":"mine"},{"id":"s1-1","type":"gemini","content":"rewritten"}]}`)
	h.append(t, vscode+"/"+log, strings.Join(lines[2:], ""))
	once(t, store, h.options())
	for _, path := range paths {
		requireKept(t, store, path)
	}
	require.Len(t, texts(t, store, "s1"), 200)
	before, err := store.View().Head(t.Context())
	require.NoError(t, err)
	once(t, store, h.options()) // looked at again: changed just before
	once(t, store, h.options())
	once(t, store, h.options())
	after, err := store.View().Head(t.Context())
	require.NoError(t, err)
	require.LessOrEqual(t, after.Number-before.Number, uint64(1)) // the states of files
}

// A file that is written again for each message keeps what it had: the store grows with what is new. The file comes back as it is,
// also after its shorter form, and after a collection that keeps nothing which is not needed.
func TestWholeFileThatGrows(t *testing.T) {
	h, store := newHome(t), memory(t)
	path := h.path(".gemini", "tmp", "p", "chats", "session-1.json")
	var said []string
	for i := range 120 {
		said = append(said, fmt.Sprintf("%d %s", i, strings.Repeat("words ", 30)))
	}
	at := time.Now().Add(-time.Hour)
	write := func(n int) uint64 {
		at = at.Add(time.Second)
		h.write(t, path, geminiSession("s1", said[:n]...))
		require.NoError(t, os.Chtimes(path, at, at))
		o := h.options()
		o.Once = true
		require.NoError(t, Run(bg, store, o))
		requireKept(t, store, path)
		stats, err := store.Stats(bg)
		require.NoError(t, err)
		return stats.Spans
	}
	before := write(100)
	for n := 101; n <= 110; n++ {
		after := write(n)
		require.LessOrEqual(t, after-before, uint64(8), "%d messages", n) // the message, its part, what is around it, and a block
		before = after
	}
	write(50)
	_, err := store.Collect(bg, lineage.CollectOptions{KeepUnused: -1, KeepReflog: -1})
	require.NoError(t, err)
	requireKept(t, store, path)
	write(120)
	_, err = store.Collect(bg, lineage.CollectOptions{KeepUnused: -1, KeepReflog: -1})
	require.NoError(t, err)
	requireKept(t, store, path)
	source, err := FindSource(bg, store, h.options().Machine.ID, path)
	require.NoError(t, err)
	got, err := source.IsOf(bg, Machine{ID: h.options().Machine.ID, Secret: h.options().Machine.Secret})
	require.NoError(t, err)
	require.Equal(t, h.options().Machine.Secret != "", got)
}

// Whatever a session file says, it comes back.
func TestAnyWholeFile(t *testing.T) {
	leaf := rapid.OneOf(rapid.Map(rapid.String(), func(s string) string {
		return fmt.Sprintf("%q", strings.ToValidUTF8(strings.Map(func(r rune) rune {
			if r < ' ' || r > 0xffff || r == 0x7f || r >= 0x80 && r < 0xa0 || r == 0xad || r >= 0x200b && r < 0x2070 {
				return 'x'
			}
			return r
		}, s), ""))
	}), rapid.SampledFrom([]string{"1", "-2.5e3", "true", "null", `"2026-01-01T00:00:00.000Z"`, `"0b0e7a9c-1f4e-4a4e-9d55-4a4e9d550001"`, `"s1"`, `"` + strings.Repeat("long ", 2000) + `"`}))
	value := rapid.OneOf(leaf,
		rapid.Map(rapid.SliceOfN(leaf, 0, 5), func(all []string) string { return "[ " + strings.Join(all, " ,") + "]" }),
		rapid.Map(rapid.SliceOfN(leaf, 0, 4), func(all []string) string {
			for i := range all {
				all[i] = fmt.Sprintf(`"%s":%s`, []string{"text", "a key", "id", `\u0061`}[i], all[i])
			}
			return "{" + strings.Join(all, ",\t") + "}"
		}))
	rapid.Check(t, func(r *rapid.T) {
		store, err := lineage.OpenMemory(bg, lineage.Options{})
		require.NoError(r, err)
		defer store.Close()
		h := &home{dir: t.TempDir()}
		path := h.path(".gemini", "tmp", "p", "chats", "session-1.json")
		for range rapid.IntRange(1, 3).Draw(r, "rounds") {
			members := ""
			for i, v := range rapid.SliceOfN(value, 0, 12).Draw(r, "values") {
				members += fmt.Sprintf(",\n  \"field %d\" : %s", i, v)
			}
			raw := geminiSession("s1", rapid.SliceOfN(rapid.StringMatching(`[a-z ]{0,900}`), 1, 8).Draw(r, "said")...)
			h.write(r, path, strings.TrimSuffix(raw, "\n}")+members+"}"+rapid.SampledFrom([]string{"", "\n", " \r\n"}).Draw(r, "end"))
			require.NoError(r, Run(bg, store, func() Options { o := h.options(); o.Once = true; return o }()))
			requireKept(r, store, path)
		}
	})
}

// requireNowhere requires that no entry of a store has a text.
func requireNowhere(t tester, store *lineage.Store, text string) {
	t.Helper()
	for c, err := range store.Contexts(bg) {
		require.NoError(t, err)
		for e, err := range c.Entries(bg, lineage.Window{}) {
			require.NoError(t, err)
			require.NotContains(t, string(e.Body), text)
		}
	}
}

// Texts of a file that is kept are those of its messages: what is erased there is erased in the file. What was kept of the file of
// a thread that was deleted goes with the next collection.
func TestWholeFileOfDeleted(t *testing.T) {
	h, store := newHome(t), memory(t)
	path := h.path(".gemini", "tmp", "p", "chats", "session-1.json")
	h.write(t, path, geminiSession("s1", "keep this", "my secret is here", strings.Repeat("long ", 10_000)))
	other := h.path(".gemini", "tmp", "p", "chats", "session-2.json")
	h.write(t, other, geminiSession("s2", "stays"))
	once(t, store, h.options())
	requireKept(t, store, path)
	thread, err := store.FindThread(bg, "s1")
	require.NoError(t, err)
	main, err := thread.Active(bg)
	require.NoError(t, err)
	entries, err := main.All(bg)
	require.NoError(t, err)
	for _, id := range entries[1].Contents() {
		require.NoError(t, store.Erase(bg, id))
	}
	s, err := FindSource(bg, store, strings.Repeat("ab", machineSize), path)
	require.NoError(t, err)
	var out bytes.Buffer
	require.ErrorIs(t, s.Export(bg, &out), lineage.ErrErased)
	require.NotContains(t, out.String(), "secret")
	requireNowhere(t, store, "secret")
	h.write(t, path, geminiSession("s1", "keep this", "my secret is here", strings.Repeat("long ", 10_000), "one more")) // its agent still has it
	once(t, store, h.options())
	requireNowhere(t, store, "secret")
	n, err := ForgetDeleted(bg, store)
	require.NoError(t, err)
	require.Zero(t, n)
	require.NoError(t, thread.Delete(bg))
	n, err = ForgetDeleted(bg, store)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	_, err = store.Collect(bg, lineage.CollectOptions{KeepReflog: -1, KeepUnused: -1})
	require.NoError(t, err)
	_, err = FindSource(bg, store, strings.Repeat("ab", machineSize), path)
	require.ErrorIs(t, err, lineage.ErrNotFound)
	requireKept(t, store, other)
	once(t, store, h.options())
	require.Nil(t, texts(t, store, "s1"))
}

// meddling is an engine beside which somebody else does something before its first commit.
type meddling struct {
	backend.Engine
	meddle func()
}

func (m *meddling) Apply(ctx context.Context, c *structure.Commit, o backend.Options) (backend.Receipt, error) {
	if do := m.meddle; do != nil {
		m.meddle = nil
		do()
	}
	return m.Engine.Apply(ctx, c, o)
}

// What another process stores again, or records, while what is kept of deleted threads is forgotten, stays.
func TestForgetDeletedBesideAnother(t *testing.T) {
	for name, c := range map[string]struct {
		meddle func(t *testing.T, store *lineage.Store, f *sessionFile)
		forgot int
	}{
		"nobody":            {func(*testing.T, *lineage.Store, *sessionFile) {}, 1},
		"the session again": {func(t *testing.T, store *lineage.Store, _ *sessionFile) { newSessionFile(t, store, "s1") }, 0},
		"the file goes on": {func(t *testing.T, _ *lineage.Store, f *sessionFile) {
			f.line("more\n")
			require.NoError(t, f.record(f.source()))
		}, 0},
		"another one forgets": {func(t *testing.T, store *lineage.Store, _ *sessionFile) {
			n, err := ForgetDeleted(bg, store)
			require.NoError(t, err)
			require.Equal(t, 1, n)
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			store := memory(t)
			f := newSessionFile(t, store, "s1")
			f.say("one")
			require.NoError(t, f.record(nil))
			require.NoError(t, f.thread.Delete(bg))
			n, err := ForgetDeleted(bg, lineage.New(&meddling{write.Of(store).Engine(), func() { c.meddle(t, store, f) }}))
			require.NoError(t, err)
			require.Equal(t, c.forgot, n)
			_, err = FindSource(bg, store, machine, "/home/s1")
			if strings.HasPrefix(name, "the ") {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, lineage.ErrNotFound)
			}
		})
	}
}
