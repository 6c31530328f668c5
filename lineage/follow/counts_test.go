package follow

import (
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/formats"
)

// Sessions of agents that count them are those of their machine: two machines have equal ids.
func TestSessionsOfAgentsThatCount(t *testing.T) {
	store := memory(t)
	raw, err := os.ReadFile("../archive/testdata/agents/goose/20250601_120000.jsonl")
	require.NoError(t, err)
	task := `[{"role":"user","content":"hello","ts":1770000000000},{"role":"assistant","content":"hi","ts":1770000000001}]`
	for i, id := range []string{"ab", "cd"} {
		h := newHome(t)
		o := h.options()
		o.Machine.ID = strings.Repeat(id, machineSize)
		session := h.path(".local", "share", "goose", "sessions", "20250601_120000.jsonl")
		h.write(t, session, string(raw))
		h.write(t, h.path(".cline", "data", "tasks", "1770000000000", "api_conversation_history.json"), task)
		once(t, store, o)
		for range 2 {
			s, err := FindSource(bg, store, o.Machine.ID, session)
			require.NoError(t, err)
			require.NoError(t, s.Export(bg, new(strings.Builder)))
			require.True(t, strings.HasPrefix(s.Recorded.Session, "20250601_120000@"), s.Recorded.Session)
			n := 0
			for found, err := range store.Threads(bg, lineage.ThreadQuery{}) {
				require.NoError(t, err)
				info, err := found.Thread.Info(bg)
				require.NoError(t, err)
				require.Contains(t, info.SourceID, "@")
				n++
			}
			require.Equal(t, 2*(i+1), n)
			h.append(t, session, `{"role":"user","created":1748779300,"content":[{"type":"text","text":"more"}]}`+"\n")
			once(t, store, o)
		}
	}
}

// A folder in which an agent has files of two formats is listed once, with all of them.
func TestFolderOfTwoFormatsIsListedOnce(t *testing.T) {
	h, store := newHome(t), memory(t)
	dir := h.path(".local", "share", "goose", "sessions")
	h.write(t, dir+"/20250601_120000.jsonl", "")
	h.write(t, dir+"/sessions.db", "")
	o := h.options()
	o.Formats = append(formats.All(), archive.Format{Name: "goose"}) // which a package above reads
	all, err := List(bg, store, o)
	require.NoError(t, err)
	var files []int64
	for _, l := range all {
		if l.Agent.Name == "goose" {
			files = append(files, l.Files)
		}
	}
	require.Equal(t, []int64{2}, files)
}

// What is reported beside a path does not repeat it, and is still the same kind of error.
func TestBesidePath(t *testing.T) {
	_, err := os.Open("/nonesuch/file")
	require.Equal(t, "no such file or directory", besidePath("/nonesuch/file", err).Error())
	require.ErrorIs(t, besidePath("/nonesuch/file", err), fs.ErrNotExist)
	require.Equal(t, err, besidePath("/nonesuch", err))
}
