package follow

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
)

var (
	uuids = regexp.MustCompile(`"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"`)
	times = regexp.MustCompile(`"timestamp":"[^"]*"`)
)

// copyOf returns a copy of a session in which the session and each line have another id and another time.
func copyOf(r *rand.Rand, session string) (id, raw string) {
	ids := make(map[string]string)
	raw = uuids.ReplaceAllStringFunc(session, func(was string) string {
		if ids[was] == "" {
			ids[was] = fmt.Sprintf(`"%08x-%04x-4%03x-8%03x-%012x"`, r.Uint32(), r.IntN(1<<16), r.IntN(1<<12), r.IntN(1<<12), r.Int64N(1<<48))
		}
		return ids[was]
	})
	at := time.UnixMilli(1770000000000 + r.Int64N(1e9))
	raw = times.ReplaceAllStringFunc(raw, func(string) string {
		at = at.Add(time.Duration(r.IntN(5000)) * time.Millisecond)
		return `"timestamp":"` + at.UTC().Format("2006-01-02T15:04:05.000Z") + `"`
	})
	return strings.Trim(regexp.MustCompile(`"sessionId":("[^"]*")`).FindStringSubmatch(raw)[1], `"`), raw
}

// sessionOf returns a session of Claude Code with calls, results, progress and snapshots, of a number of answers.
func sessionOf(r *rand.Rand, answers int) string {
	words := func(n int) string {
		var b strings.Builder
		for range n {
			fmt.Fprintf(&b, "%x ", r.IntN(1<<14))
		}
		return b.String()
	}
	var b strings.Builder
	parent, session := "null", `"aaaaaaaa-0000-4000-8000-000000000000"`
	n := 0
	line := func(more string) (id string) {
		n++
		id = fmt.Sprintf(`"aaaaaaaa-0000-4000-8000-%012d"`, n)
		fmt.Fprintf(&b, `{"parentUuid":%s,"isSidechain":false,"cwd":"/src/app","sessionId":%s,"version":"2.1.39","gitBranch":"main",%s,"uuid":%s,"timestamp":"2026-01-01T00:00:00.000Z"}`+"\n", parent, session, more, id)
		return id
	}
	parent = line(fmt.Sprintf(`"type":"user","message":{"role":"user","content":%q}`, words(20)))
	for i := range answers {
		answer := fmt.Sprintf(`"type":"assistant","requestId":"req_%d","message":{"id":"msg_%d","type":"message","role":"assistant","model":"m","usage":{"input_tokens":%d,"output_tokens":20}`, i, i, i)
		parent = line(answer + fmt.Sprintf(`,"content":[{"type":"text","text":%q}]}`, words(60)))
		call := line(answer + fmt.Sprintf(`,"content":[{"type":"tool_use","id":"toolu_%d","name":"Bash","input":{"command":%q}}]}`, i, words(10)))
		parent = call
		line(fmt.Sprintf(`"type":"progress","data":{"type":"agent_progress","message":{"type":"user","message":{"role":"user","content":%q},"uuid":%s,"timestamp":"2026-01-01T00:00:00.000Z"},"agentId":"a1"},"toolUseID":"toolu_%d"`, words(60), call, i))
		fmt.Fprintf(&b, `{"type":"file-history-snapshot","messageId":%s,"snapshot":{"messageId":%s,"trackedFileBackups":{"src/main file.go":{"version":1}},"timestamp":"2026-01-01T00:00:00.000Z"},"isSnapshotUpdate":false}`+"\n", parent, parent)
		out := words(160)
		parent = line(fmt.Sprintf(`"type":"user","message":{"role":"user","content":[{"tool_use_id":"toolu_%d","type":"tool_result","content":%q}]},"toolUseResult":{"stdout":%q},"sourceToolAssistantUUID":%s`, i, out, out, call))
	}
	return b.String()
}

// journalSize returns the size of the journal of a store with sessions.
func journalSize(t *testing.T, sessions ...string) int64 {
	h := newHome(t)
	for i, raw := range sessions {
		h.write(t, filepath.Join(h.project(), fmt.Sprintf("%d.jsonl", i)), raw)
	}
	dir := filepath.Join(t.TempDir(), "store")
	store, err := lineage.Open(t.Context(), dir, lineage.Options{Durability: lineage.Normal})
	require.NoError(t, err)
	require.Empty(t, of(once(t, store, h.options()), Failed))
	for i, raw := range sessions {
		requireExport(t, store, h, filepath.Join(h.project(), fmt.Sprintf("%d.jsonl", i)), raw)
	}
	require.NoError(t, store.Close())
	size := int64(0)
	files, err := os.ReadDir(filepath.Join(dir, "journal"))
	require.NoError(t, err)
	for _, f := range files {
		info, err := f.Info()
		require.NoError(t, err)
		size += info.Size()
	}
	return size
}

func requireExport(t tester, store *lineage.Store, h *home, path, want string) {
	t.Helper()
	s, err := FindSource(bg, store, h.options().Machine.ID, path)
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, s.Export(bg, &out))
	require.Equal(t, want, out.String())
}

// A copy in which ids and times of lines differ costs these: 20 copies of a session cost at most 1.6 times what one costs.
func TestCopiesCostIdsAndTimes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	session := sessionOf(r, 100)
	sessions := []string{session}
	for range 3 {
		_, raw := copyOf(r, session)
		sessions = append(sessions, raw)
	}
	one, all := journalSize(t, session), journalSize(t, sessions...)
	require.LessOrEqual(t, float64(all-one)/3/float64(one), 0.6/19, "%d bytes, with copies %d", one, all)
}

// Whatever is copied, cut off, added and read when: files come back byte for byte, threads have the messages of their files, and
// the histories of copies share their beginning.
func TestAnyCopies(t *testing.T) {
	dir, n := newHome(t).dir, 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		at := time.Now().Add(-time.Hour)
		r := rand.New(rand.NewPCG(uint64(n), 0))
		store, err := lineage.OpenMemory(bg, lineage.Options{})
		require.NoError(t, err)
		defer store.Close()
		h := &home{dir: filepath.Join(dir, fmt.Sprint(n))}
		files := []string{sessionOf(r, rapid.IntRange(1, 4).Draw(t, "answers"))}
		ids := []string{"aaaaaaaa-0000-4000-8000-000000000000"}
		for range rapid.IntRange(1, 3).Draw(t, "copies") {
			lines := strings.SplitAfter(rapid.SampledFrom(files).Draw(t, "of"), "\n")
			id, raw := copyOf(r, strings.Join(lines[:rapid.IntRange(1, len(lines)-1).Draw(t, "lines")], ""))
			files, ids = append(files, raw), append(ids, id)
		}
		read := func() {
			for i := range files {
				path := filepath.Join(h.project(), ids[i]+".jsonl")
				h.write(t, path, files[i])
				at = at.Add(time.Second) // long ago: nothing waits for the time to say that it has changed
				require.NoError(t, os.Chtimes(path, at, at))
			}
			o := h.options()
			o.Once = true
			require.NoError(t, Run(bg, store, o))
			for i := range files {
				requireExport(t, store, h, filepath.Join(h.project(), ids[i]+".jsonl"), files[i])
			}
		}
		read()
		for range rapid.IntRange(0, 2).Draw(t, "rounds") {
			i := rapid.IntRange(0, len(files)-1).Draw(t, "grows")
			more := strings.SplitAfter(sessionOf(r, 2), "\n")
			_, added := copyOf(r, strings.ReplaceAll(strings.Join(more[1:rapid.IntRange(2, len(more)-1).Draw(t, "more")], ""), "msg_", fmt.Sprint("msg_", r.IntN(100), "_")))
			files[i] += regexp.MustCompile(`"sessionId":"[^"]*"`).ReplaceAllString(added, fmt.Sprintf(`"sessionId":%q`, ids[i]))
			read()
		}
		for _, id := range ids {
			alone, err := lineage.OpenMemory(bg, lineage.Options{})
			require.NoError(t, err)
			_, err = importer.Import(bg, alone, archive.Path(filepath.Join(h.project(), id+".jsonl")), importer.Options{})
			require.NoError(t, err)
			require.Equal(t, texts(t, alone, id), texts(t, store, id))
			require.NoError(t, alone.Close())
		}
		for _, e := range verify(t, store) {
			require.Fail(t, "finding", "%v", e)
		}
	})
}

func verify(t tester, store *lineage.Store) (all []any) {
	for finding, err := range store.Verify(bg, lineage.VerifyOptions{Deep: true}) {
		require.NoError(t, err)
		all = append(all, finding)
	}
	return all
}
