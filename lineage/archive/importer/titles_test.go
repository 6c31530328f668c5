package importer_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/storetest"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
)

// A conversation without id and title that is alone in its file is named after the file: agent runs
// are only distinguished by file names.
func TestFilesNameTheirRuns(t *testing.T) {
	ctx := context.Background()
	run := func(text string) []byte {
		return []byte(`[{"role":"user","content":"` + text + `"},{"role":"assistant","content":"done"}]`)
	}
	pair := []byte(`{"messages":[{"role":"user","content":"x"}]}` + "\n" + `{"messages":[{"role":"user","content":"y"}]}` + "\n")
	dir := t.TempDir()
	for name, b := range map[string][]byte{
		"a/task-1.json": run("one"), "a/task-2.v1.2": run("two"), "b/task-3.traj.gz": gzipped(t, run("three")),
		"b/many.jsonl": pair, "c.zip": zipped(t, file{"d/task-4.json", run("four")}),
		"chatgpt.json": chatGPTExport(t),
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, b, 0o600))
	}
	s := storetest.New(t)
	titles := func() []string {
		var titles []string
		for thread, err := range s.Threads(ctx, lineage.ThreadQuery{}) {
			require.NoError(t, err)
			info, err := thread.Info(ctx)
			require.NoError(t, err)
			titles = append(titles, info.Title)
		}
		return titles
	}
	_, err := importer.Import(ctx, s, archive.Path(dir), importer.Options{})
	require.NoError(t, err)
	first := titles()
	require.Subset(t, first, []string{"a/task-1", "a/task-2.v1.2", "b/task-3", "c.zip/d/task-4", ""})
	require.Len(t, first, 8)
	require.NotContains(t, first, "chatgpt")
	require.NotContains(t, first, "b/many")

	// Under another file name, or none, it is the same conversation and keeps its title.
	head, err := s.View().Head(ctx)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "renamed.json")
	require.NoError(t, os.WriteFile(path, run("one"), 0o600))
	for _, src := range []archive.Source{archive.Path(path), archive.Stream("", bytes.NewReader(run("one"))), archive.Path(dir)} {
		_, err = importer.Import(ctx, s, src, importer.Options{})
		require.NoError(t, err)
		again, err := s.View().Head(ctx)
		require.NoError(t, err)
		require.Equal(t, head, again)
	}
}

// An exported chat of VS Code has no id and no title. It is named after its first prompt, and not after its file, whose name is chat.json for all.
func TestExportedChatIsNotNamedAfterItsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "chat.json")
	require.NoError(t, os.WriteFile(path, []byte(`{"responderUsername":"GitHub Copilot","initialLocation":"panel","requests":[{"requestId":"r","message":{"text":"Name a colour.","parts":[]},"response":[{"value":"Blue."}],"responseId":"a","timestamp":1767225600000}]}`), 0o600))
	s := storetest.New(t)
	_, err := importer.Import(context.Background(), s, archive.Path(path), importer.Options{})
	require.NoError(t, err)
	n := 0
	for thread, err := range s.Threads(context.Background(), lineage.ThreadQuery{}) {
		require.NoError(t, err)
		info, err := thread.Info(context.Background())
		require.NoError(t, err)
		require.Empty(t, info.Title)
		n++
	}
	require.Equal(t, 1, n)
}

// A session of Claude Code has the title of a summary whose leaf is in it, wherever the summary is, and not that of another session's.
// The title that the model gave it counts before a summary, and the one that the person gave it before both.
func TestSummariesNameTheirSession(t *testing.T) {
	message := `{"type":"user","uuid":"1","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"a"}}` + "\n"
	mine, other := `{"type":"summary","summary":"mine","leafUuid":"1"}`+"\n", `{"type":"summary","summary":"another's","leafUuid":"2"}`+"\n"
	given, later := `{"type":"ai-title","aiTitle":"given","sessionId":"s"}`+"\n", `{"type":"ai-title","aiTitle":"later","sessionId":"s"}`+"\n"
	named := `{"type":"custom-title","customTitle":"named","sessionId":"s"}` + "\n"
	for text, want := range map[string]string{
		mine + message: "mine", message + mine: "mine", other + message: "", message + other: "", other + mine + message: "mine", mine + other + message: "mine",
		message + mine + other: "mine", named + mine + message: "named", mine + message + named: "named",
		message + given: "given", message + mine + given: "given", given + message + mine: "given", message + given + later: "later", named + message + given: "named", message + given + named: "named",
	} {
		for _, grows := range []bool{false, true} {
			s := storetest.New(t)
			if !grows {
				importText(t, s, "s.jsonl", text, importer.Options{})
			} else {
				g := importer.Grow(s, "s.jsonl", importer.Options{Format: "claude-code"})
				for line := range strings.Lines(text) {
					_, err := g.Read(t.Context(), strings.NewReader(line))
					require.NoError(t, err)
				}
				g.Close()
			}
			thread, err := s.FindThread(t.Context(), "s")
			require.NoError(t, err)
			info, err := thread.Info(t.Context())
			require.NoError(t, err)
			require.Equal(t, want, info.Title, "grows: %v, %s", grows, text)
		}
	}
}
