package importer_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/storetest"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
)

// A session whose lines state no parents is one history.
func TestSessionWithoutParents(t *testing.T) {
	ctx := context.Background()
	line := func(kind, content, more string) string {
		return fmt.Sprintf(`{"type":%q,"timestamp":"2026-01-01T00:00:00Z","sessionId":"s",%s"message":{"role":%q,"content":%q}}`, kind, more, kind, content)
	}
	for name, file := range map[string][]string{
		"plain":       {line("user", "a", ""), line("assistant", "b", ""), line("user", "c", ""), line("assistant", "d", "")},
		"with ids":    {line("user", "a", `"uuid":"1",`), line("assistant", "b", `"uuid":"2",`), line("user", "c", `"uuid":"3",`), line("assistant", "d", `"uuid":"4",`)},
		"some":        {line("user", "a", `"uuid":"1","parentUuid":null,`), line("assistant", "b", ""), line("user", "c", `"uuid":"3",`), line("assistant", "d", `"uuid":"4","parentUuid":"3",`)},
		"null":        {line("user", "a", `"uuid":"1","parentUuid":null,`), line("assistant", "b", `"uuid":"2","parentUuid":null,`), line("user", "c", `"uuid":"3","parentUuid":null,`), line("assistant", "d", `"uuid":"4","parentUuid":null,`)},
		"with events": {`{"type":"summary","summary":"t","leafUuid":"x"}`, line("user", "a", ""), `{"type":"progress","sessionId":"s"}`, line("assistant", "b", ""), line("user", "c", ""), line("assistant", "d", "")},
	} {
		t.Run(name, func(t *testing.T) {
			s := storetest.New(t)
			_, err := importer.Import(ctx, s, archive.Stream("s.jsonl", strings.NewReader(strings.Join(file, "\n")+"\n")), importer.Options{})
			require.NoError(t, err)
			thread, err := s.FindThread(ctx, "s")
			require.NoError(t, err)
			branches, err := thread.Branches(ctx)
			require.NoError(t, err)
			require.Len(t, branches, 1)
			main, err := thread.Active(ctx)
			require.NoError(t, err)
			length, err := main.Len(ctx)
			require.NoError(t, err)
			require.EqualValues(t, 4, length)
		})
	}
}

// Lines without a parent of a subagent follow the lines of that subagent, not those of the session.
func TestSubagentWithoutParents(t *testing.T) {
	ctx := context.Background()
	line := func(text string, side bool) string {
		return fmt.Sprintf(`{"type":"user","sessionId":"s","cwd":"/p","isSidechain":%v,"message":{"role":"user","content":%q}}`, side, text)
	}
	s := storetest.New(t)
	file := strings.Join([]string{line("a", false), line("x", true), line("b", false), line("y", true)}, "\n")
	_, err := importer.Import(ctx, s, archive.Stream("s.jsonl", strings.NewReader(file+"\n")), importer.Options{})
	require.NoError(t, err)
	thread, err := s.FindThread(ctx, "s")
	require.NoError(t, err)
	var histories []string
	for c, err := range thread.Contexts(ctx) {
		require.NoError(t, err)
		all, err := c.All(ctx)
		require.NoError(t, err)
		history := ""
		for _, e := range all {
			history += e.Excerpt()
		}
		histories = append(histories, history)
	}
	require.ElementsMatch(t, []string{"ab", "xy"}, histories)
}

// The last line of a session that is being written is not damage: the next import reads it.
func TestLastLineIsBeingWritten(t *testing.T) {
	ctx := context.Background()
	for format, file := range map[string][2]string{
		"claude-code": {
			`{"type":"user","uuid":"1","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"a"}}`,
			`{"type":"assistant","uuid":"2","parentUuid":"1","sessionId":"s","message":{"role":"assistant","content":"b"}}`,
		},
		"codex": {
			`{"type":"session_meta","payload":{"id":"s"}}` + "\n" + `{"type":"response_item","payload":{"type":"message","role":"user","content":"a"}}`,
			`{"type":"response_item","payload":{"type":"message","role":"assistant","content":"b"}}`,
		},
		"copilot": {
			`{"type":"session.start","data":{"sessionId":"s"},"id":"0","timestamp":"2026-01-01T00:00:00Z","parentId":null}` + "\n" + `{"type":"user.message","id":"1","parentId":"0","timestamp":"2026-01-01T00:00:00Z","data":{"content":"a"}}`,
			`{"type":"assistant.message","id":"2","parentId":"1","timestamp":"2026-01-01T00:00:00Z","data":{"content":"b"}}`,
		},
		"gemini": {
			`{"sessionId":"s","projectHash":"p","startTime":"2026-01-01T00:00:00Z"}` + "\n" + `{"id":"1","timestamp":"2026-01-01T00:00:00Z","type":"user","content":"a"}`,
			`{"id":"2","timestamp":"2026-01-01T00:00:00Z","type":"gemini","content":"b"}`,
		},
		"qwen": {
			`{"uuid":"1","parentUuid":null,"sessionId":"s","type":"user","message":{"role":"user","parts":[{"text":"a"}]}}`,
			`{"uuid":"2","parentUuid":"1","sessionId":"s","type":"assistant","message":{"role":"model","parts":[{"text":"b"}]}}`,
		},
		"pi": {
			`{"type":"session","id":"s","timestamp":"2026-01-01T00:00:00Z","cwd":"/w"}` + "\n" + `{"type":"message","id":"1","parentId":null,"timestamp":"2026-01-01T00:00:00Z","message":{"role":"user","content":"a"}}`,
			`{"type":"message","id":"2","parentId":"1","timestamp":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"b"}}`,
		},
	} {
		t.Run(format, func(t *testing.T) {
			s := storetest.New(t)
			path := filepath.Join(t.TempDir(), "s.jsonl")
			write := func(text string) importer.Report {
				require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
				report, err := importer.Import(ctx, s, archive.Path(path), importer.Options{})
				require.NoError(t, err)
				return report
			}
			for _, cut := range []int{1, 20, len(file[1]) - 1} {
				report := write(file[0] + "\n" + file[1][:cut])
				require.Empty(t, report.Skipped, cut)
				require.EqualValues(t, 1, report.RepairedCount, cut)
				require.EqualValues(t, 1, report.Messages, cut)
			}
			report := write(file[0] + "\n" + file[1])
			require.Zero(t, report.RepairedCount)
			require.EqualValues(t, 1, report.NewMessages)

			// A line with an end is complete: what is wrong with it is damage.
			report = write(file[0] + "\n" + file[1][:20] + "\n")
			require.Len(t, report.Skipped, 1)
			require.Zero(t, report.RepairedCount)
		})
	}
}

// The file of a subagent that is read first, and is later than that of its session, does not keep title and metadata of
// the session out, and one that is read again does not replace them.
func TestFileOfSubagentBesideItsSession(t *testing.T) {
	session := file{"s.jsonl", []byte(`{"type":"summary","summary":"title","leafUuid":"1"}
{"type":"user","uuid":"1","parentUuid":null,"sessionId":"s","cwd":"/w","timestamp":"2026-01-01T00:00:00Z","message":{"role":"user","content":"a"}}
`)}
	subagent := file{"agent-x.jsonl", []byte(`{"type":"user","uuid":"2","parentUuid":null,"sessionId":"s","agentId":"x","isSidechain":true,"cwd":"/elsewhere","timestamp":"2026-01-01T00:00:05Z","message":{"role":"user","content":"b"}}
`)}
	for name, files := range map[string][]file{"subagent first": {subagent, session}, "session first": {session, subagent}, "again": {subagent, session, subagent}} {
		t.Run(name, func(t *testing.T) {
			s := storetest.New(t)
			for _, f := range files {
				importText(t, s, f.name, string(f.body), importer.Options{})
			}
			thread, err := s.FindThread(t.Context(), "s")
			require.NoError(t, err)
			info, err := thread.Info(t.Context())
			require.NoError(t, err)
			require.Equal(t, "title", info.Title)
			require.Contains(t, string(info.Metadata), `"cwd":"/w"`)
		})
	}
}
