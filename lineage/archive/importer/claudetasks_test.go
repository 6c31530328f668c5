package importer_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/storetest"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
)

// A subagent in the file of its session is put below the message with the one call whose prompt it begins with.
func TestSubagentsInTheSession(t *testing.T) {
	line := func(id, parent, side, role, content string) string {
		return fmt.Sprintf(`{"type":%q,"sessionId":"s","uuid":%q,"parentUuid":%s,"timestamp":"2026-01-01T00:00:00Z","isSidechain":%s,"cwd":"/w","message":{"role":%q,"content":%s}}`, role, id, parent, side, role, content)
	}
	task := func(id, prompt string) string {
		return fmt.Sprintf(`{"type":"tool_use","id":%q,"name":"Task","input":{"description":"d","prompt":%q}}`, id, prompt)
	}
	lines := []string{
		line("u", "null", "false", "user", `"go"`),
		line("a1", `"u"`, "false", "assistant", "["+task("c1", "one")+"]"),
		line("a2", `"a1"`, "false", "assistant", "["+task("c2", "two")+","+task("c3", "same")+","+task("c4", "same")+","+task("c5", "done")+"]"),
		line("r5", `"a2"`, "false", "user", `[{"type":"tool_result","tool_use_id":"c5","content":"x"}]`),
		line("x2", "null", "true", "user", `[{"type":"text","text":"two"}]`),
		line("y2", `"x2"`, "true", "assistant", `"two done"`),
		line("x1", "null", "true", "user", `"one"`),
		line("x3", "null", "true", "user", `"same"`),  // either of two calls
		line("x5", "null", "true", "user", `"done"`),  // the call has its result
		line("x6", "null", "true", "user", `"two"`),   // the call has started one already
		line("x7", "null", "true", "user", `"never"`), // nobody has called it
	}
	s := storetest.New(t)
	_, err := importer.Import(context.Background(), s, archive.Stream("s.jsonl", strings.NewReader(strings.Join(lines, "\n")+"\n")), importer.Options{})
	require.NoError(t, err)
	thread, err := s.FindThread(context.Background(), "s")
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"u a1 a2 r5", "u a1 a2 x2 y2", "u a1 x1", "x3", "x5", "x6", "x7"}, idsOf(t, thread))
}

// idsOf returns the ids of the messages that each context of a thread has.
func idsOf(t *testing.T, thread *lineage.Thread) (all []string) {
	ctx := context.Background()
	for c, err := range thread.Contexts(ctx) {
		require.NoError(t, err)
		var ids []string
		for e, err := range c.Entries(ctx, lineage.Window{}) {
			require.NoError(t, err)
			ids = append(ids, e.SourceID)
		}
		all = append(all, strings.Join(ids, " "))
	}
	return all
}

// The thread of a subagent whose session is not there has what its file states, and the session replaces it when it comes.
func TestSubagentWithoutItsSession(t *testing.T) {
	ctx := context.Background()
	line := func(id, side, cwd, model, text string) string {
		return fmt.Sprintf(`{"type":"user","sessionId":"5c0375b4-57a5-4f26-b12d-d022ee4e51b7","uuid":%q,"parentUuid":null,"timestamp":"2026-01-01T00:00:00Z","isSidechain":%s,"cwd":%q,"gitBranch":"b%s","version":"2.0","message":{"role":"user","model":%q,"content":%q}}`,
			id, side, cwd, cwd[1:], model, text) + "\n"
	}
	s := storetest.New(t)
	read := func(name, text string) lineage.ThreadInfo {
		_, err := importer.Import(ctx, s, archive.Stream(name, strings.NewReader(text)), importer.Options{})
		require.NoError(t, err)
		thread, err := s.FindThread(ctx, "5c0375b4-57a5-4f26-b12d-d022ee4e51b7")
		require.NoError(t, err)
		info, err := thread.Info(ctx)
		require.NoError(t, err)
		title, err := s.ShownTitle(ctx, info)
		require.NoError(t, err)
		info.Title = title
		return info
	}
	agent := line("x", "true", "/sub", "haiku", "Run the test suite")
	info := read("agent-test.jsonl", agent)
	require.Equal(t, "Run the test suite", info.Title)
	require.Contains(t, string(info.Metadata), `"agent":"claude-code","agentVersion":"2.0","model":"haiku","cwd":"/sub","gitBranch":"bsub"`)
	info = read("5c0375b4-57a5-4f26-b12d-d022ee4e51b7.jsonl", line("u", "false", "/main", "opus", "Test it"))
	require.Equal(t, "Test it", info.Title)
	require.Contains(t, string(info.Metadata), `"model":"opus","cwd":"/main","gitBranch":"bmain"`)
	read("agent-test.jsonl", agent)
	info = read("agent-other.jsonl", line("z", "true", "/sub", "haiku", "More"))
	require.Equal(t, "Test it", info.Title)
	require.Contains(t, string(info.Metadata), `"model":"opus","cwd":"/main","gitBranch":"bmain"`)
}
