package archive_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
)

// Sessions of all agents state the same facts under the same keys of the thread's metadata.
func TestSessionsStateTheirAgent(t *testing.T) {
	for path, want := range map[string]string{
		"claude-code-spotter/short.jsonl":   `{"agent":"claude-code","agentVersion":"2.1.38","model":"claude-opus-4-6","cwd":"/home/marco/projects/spotter","gitBranch":"master"}`,
		"codex-made/rollout-fork.jsonl":     `{"agent":"codex","agentVersion":"0.50.0","cwd":"/w"}`,
		"agentsview/standard_session.jsonl": `{"agent":"codex","cwd":"/Users/alice/code/my-api"}`,
	} {
		t.Run(path, func(t *testing.T) {
			s := storeIn(t)
			_, err := archive.Import(t.Context(), s, archive.Path(fixture(path)), archive.Options{})
			require.NoError(t, err)
			for found, err := range s.Threads(t.Context(), lineage.ThreadQuery{}) {
				require.NoError(t, err)
				info, err := found.Thread.Info(t.Context())
				require.NoError(t, err)
				require.Truef(t, strings.HasPrefix(string(info.Metadata), strings.TrimSuffix(want, "}")+","), "%s", info.Metadata)
			}
		})
	}
}

// A large field of a session is stored as content, once for all sessions.
func TestLargeFieldsOfSessions(t *testing.T) {
	s := storeIn(t)
	told := strings.Repeat("You are an agent. ", 400)
	session := func(id string) string {
		return `{"timestamp":"2026-01-01T00:00:00Z","type":"session_meta","payload":{"id":"` + id + `","cwd":"/w","git":{"branch":"fix"},"base_instructions":{"text":"` + told + `"}}}
{"timestamp":"2026-01-01T00:00:01Z","type":"response_item","payload":{"type":"message","role":"user","content":"` + id + `"}}
`
	}
	src := zipped(t, file{"a.jsonl", []byte(session("a"))}, file{"b.jsonl", []byte(session("b"))})
	report := importText(t, s, "z", string(src), archive.Options{})
	require.EqualValues(t, 2, report.NewConversations)
	require.Less(t, report.NewBytes, int64(2*len(told)))
	thread, err := s.FindThread(t.Context(), "a")
	require.NoError(t, err)
	info, err := thread.Info(t.Context())
	require.NoError(t, err)
	require.Less(t, len(info.Metadata), 512, "%s", info.Metadata)
	require.Contains(t, string(info.Metadata), `"agent":"codex","cwd":"/w","gitBranch":"fix"`)
}
