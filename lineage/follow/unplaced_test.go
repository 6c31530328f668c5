package follow

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
)

// Files of lines without a session are kept byte for byte: of two followers, after one was interrupted, and when a session begins later.
// They are of no thread, so no collection takes them away.
func TestFilesWithoutASession(t *testing.T) {
	h, store := newHome(t), memory(t)
	uuid := "11111111-1111-4111-8111-11111111111"
	snapshot := `{"type":"file-history-snapshot","messageId":"m","snapshot":{},"isSnapshotUpdate":false}` + "\n"
	files := map[string]string{
		h.project() + "/" + uuid + "1.jsonl":                        `{"type":"summary","summary":"t","leafUuid":"x"}` + "\r\n",
		h.project() + "/" + uuid + "2.jsonl":                        snapshot + snapshot,
		h.project() + "/" + uuid + "3.jsonl":                        "\n",
		h.project() + "/named.jsonl":                                `{"type":"summary","summary":"t","leafUuid":"x"}` + "\n" + snapshot,
		h.project() + "/deep.jsonl":                                 strings.Repeat("[", 100_000) + "\n{\n",
		h.project() + "/random.jsonl":                               "\x00\xff\x1b]0;title\x07\n\n\xfe\n",
		h.path(".pi", "agent", "sessions", "--w--", "2026_1.jsonl"): `{"type":"session","version":3,"id":"pi-1","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}` + "\n",
		h.path(".codex", "sessions", "2026", "11", "28", "rollout-2026-11-28T00-00-00-aaaa.jsonl"):         rolloutLines("aaaa", "", 0),
		h.path(".codex", "sessions", "2026", "11", "28", "rollout-2026-11-28T00-00-00-"+uuid+"4"+".jsonl"): "not\n",
	}
	exact := func() {
		t.Helper()
		_, err := ForgetDeleted(bg, store)
		require.NoError(t, err)
		for path := range files {
			raw, err := os.ReadFile(path)
			require.NoError(t, err)
			s, err := FindSource(bg, store, h.options().Machine.ID, path)
			require.NoError(t, err, path)
			sum := sha256.New()
			require.NoError(t, s.Export(bg, sum), path)
			want := sha256.Sum256(raw)
			require.Equal(t, hex.EncodeToString(want[:]), hex.EncodeToString(sum.Sum(nil)), path)
		}
	}
	for path, content := range files {
		h.write(t, path, content)
	}
	// One that follows is interrupted, and another one reads the same.
	first, second := start(t, store, h.options()), start(t, store, h.options())
	h.caughtUp(t, first, second)
	first.stop(t)
	second.stop(t)
	exact()
	once(t, store, h.options()) // the times of files tell whether they changed since
	for _, e := range once(t, store, h.options()) {
		require.NotEqual(t, Read, e.Kind, e.Path)
	}
	threads := func() (n int) {
		for _, err := range store.Threads(bg, lineage.ThreadQuery{}) {
			require.NoError(t, err)
			n++
		}
		return n
	}
	before := threads()
	for path := range files { // what is no session grows, and is none
		h.append(t, path, "more\n")
	}
	once(t, store, h.options())
	exact()
	require.Equal(t, before, threads())
	named := h.project() + "/named.jsonl"
	h.append(t, named, line("s", "u1", "", "user", "hello")+"\n")
	once(t, store, h.options())
	exact()
	require.Equal(t, []string{"hello"}, texts(t, store, "s"))
	h.append(t, named, line("s", "u2", "u1", "assistant", "hi")+"\n")
	once(t, store, h.options())
	exact()
	require.Equal(t, []string{"hello", "hi"}, texts(t, store, "s"))
	require.Equal(t, before+1, threads())
}

// A session that states its id after its first lines were kept has its messages from them, so that what is erased in a message is erased
// in the file.
func TestSessionThatBeginsLate(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		h, store := newHome(t), memory(t)
		path := h.project() + "/named.jsonl"
		first := `{"type":"user","uuid":"u1","parentUuid":null,"cwd":"/src/app","message":{"role":"user","content":"my secret"}}` + "\n"
		h.write(t, path, first)
		f := start(t, store, h.options())
		if restarted {
			f.stop(t)
			requireKept(t, store, path)
			f = start(t, store, h.options())
		}
		h.append(t, path, line("s", "u2", "u1", "assistant", "hi"))
		h.caughtUp(t, f)
		f.stop(t)
		requireKept(t, store, path)
		require.Equal(t, []string{"my secret", "hi"}, texts(t, store, "s"))
		s, err := FindSource(bg, store, h.options().Machine.ID, path)
		require.NoError(t, err)
		spans, err := s.Spans(bg)
		require.NoError(t, err)
		require.Equal(t, []int{1, 1}, []int{len(spans[0]), len(spans[1])})
	}
}

// A file of Qwen Code that has only telemetry is no session, and comes back byte for byte. It becomes one with its first message.
func TestTelemetryIsNoSession(t *testing.T) {
	h, store := newHome(t), memory(t)
	path := h.path(".qwen", "projects", "-w", "chats", "q1.jsonl")
	record := func(id, parent, kind, rest string) string {
		return `{"uuid":"` + id + `","parentUuid":` + parent + `,"sessionId":"q1","timestamp":"2026-11-28T10:00:00Z","type":"` + kind + `","cwd":"/w",` + rest + "}\n"
	}
	h.write(t, path, record("t1", "null", "system", `"subtype":"ui_telemetry","systemPayload":{"uiEvent":{"event.name":"x"}}`))
	runs := []*following{start(t, store, h.options()), start(t, store, h.options())}
	h.append(t, path, record("t2", `"t1"`, "system", `"subtype":"ui_telemetry","systemPayload":{"uiEvent":{"event.name":"y"}}`))
	h.caughtUp(t, runs...)
	for _, f := range runs {
		f.stop(t)
	}
	requireKept(t, store, path)
	once(t, store, h.options())
	_, err := store.FindThread(t.Context(), "q1")
	require.ErrorIs(t, err, lineage.ErrNotFound)
	requireKept(t, store, path)
	require.Empty(t, of(once(t, store, h.options()), Read), "it is read once")
	h.append(t, path, record("u1", `"t2"`, "user", `"message":{"role":"user","parts":[{"text":"Hello"}]}`))
	once(t, store, h.options())
	requireKept(t, store, path)
	require.Len(t, texts(t, store, "q1"), 1)
	h.append(t, path, record("a1", `"u1"`, "assistant", `"message":{"role":"model","parts":[{"text":"Hi"}]}`))
	once(t, store, h.options())
	requireKept(t, store, path)
	require.Len(t, texts(t, store, "q1"), 2)
}
