package archives_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
)

// crushSchema is that of Crush, without its triggers.
const crushSchema = `
CREATE TABLE sessions (id TEXT PRIMARY KEY, parent_session_id TEXT, title TEXT NOT NULL, message_count INTEGER NOT NULL DEFAULT 0, prompt_tokens INTEGER NOT NULL DEFAULT 0,
	completion_tokens INTEGER NOT NULL DEFAULT 0, cost REAL NOT NULL DEFAULT 0.0, updated_at INTEGER NOT NULL, created_at INTEGER NOT NULL, summary_message_id TEXT, todos TEXT);
CREATE TABLE files (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, path TEXT NOT NULL, content TEXT NOT NULL, version INTEGER NOT NULL DEFAULT 0, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL);
CREATE TABLE messages (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, role TEXT NOT NULL, parts TEXT NOT NULL default '[]', model TEXT, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
	finished_at INTEGER, provider TEXT, is_summary_message INTEGER DEFAULT 0 NOT NULL);`

const crushRows = `
INSERT INTO sessions (id, parent_session_id, title, cost, updated_at, created_at) VALUES ('s1', NULL, 'Greet', 0.5, 1767225609, 1767225600), ('m2$$c2', 's1', 'New Agent Session', 0.1, 1767225602, 1767225601), ('title-s1', 's1', 'Generate a title', 0, 1, 1);
INSERT INTO messages (id, session_id, role, parts, model, provider, created_at, updated_at) VALUES
	('m1', 's1', 'user', '[{"type":"text","data":{"text":"Say hello"}}]', NULL, NULL, 1767225600, 1767225600),
	('m2', 's1', 'assistant', '[{"type":"reasoning","data":{"thinking":"Easy","signature":""}},{"type":"text","data":{"text":"I run it."}},{"type":"tool_call","data":{"id":"c1","name":"bash","input":"{\"command\":\"echo hello\"}","provider_executed":false,"finished":true}},{"type":"tool_call","data":{"id":"c2","name":"agent","input":"{\"prompt\":\"Help\"}","provider_executed":false,"finished":true}},{"type":"finish","data":{"reason":"tool_use","time":1767225601}}]', 'm', 'p', 1767225600, 1767225601),
	('m0', 's1', 'tool', '[{"type":"tool_result","data":{"tool_call_id":"c1","name":"bash","content":"hello","data":"","mime_type":"","metadata":"","is_error":false}}]', NULL, NULL, 1767225600, 1767225601),
	('n1', 'm2$$c2', 'user', '[{"type":"text","data":{"text":"Help"}}]', NULL, NULL, 1767225601, 1767225601);`

// The messages of Crush are read in the order in which they were added, and a subagent follows the message that called it.
func TestCrush(t *testing.T) {
	path := t.TempDir() + "/crush.db"
	execute(t, path, crushSchema, crushRows)
	s := storeIn(t)
	r := imported(t, s, path)
	require.Equal(t, []string{"crush"}, r.Formats)
	require.EqualValues(t, 1, r.Conversations)
	require.Empty(t, r.Skipped)
	thread, err := s.FindThread(bg, "s1")
	require.NoError(t, err)
	info, err := thread.Info(bg)
	require.NoError(t, err)
	require.Equal(t, "Greet", info.Title)
	require.JSONEq(t, `{"agent":"crush","cost":0.5}`, withoutArchive(t, info.Metadata))
	require.Equal(t, []string{
		"user text Say hello", "assistant reasoning Easy", "assistant text I run it.", `assistant call bash {"command":"echo hello"}`, `assistant call agent {"prompt":"Help"}`,
		`assistant data {"type":"finish","data":{"reason":"tool_use","time":1767225601}}`, "tool result hello",
	}, parts(t, thread))
	texts := make(map[string]string)
	for c, err := range thread.Contexts(bg) {
		require.NoError(t, err)
		state, err := c.Info(bg)
		require.NoError(t, err)
		var ids []string
		for e, err := range c.Entries(bg, lineage.Window{}) {
			require.NoError(t, err)
			ids = append(ids, e.SourceID)
		}
		texts[string(state.Metadata)] = strings.Join(ids, " ")
	}
	require.Equal(t, map[string]string{"": "m1 m2 m0", `{"aside":"agent m2$$c2"}`: "m1 m2 n1"}, texts)
	head, err := s.View().Head(bg)
	require.NoError(t, err)
	imported(t, s, path)
	now, err := s.View().Head(bg)
	require.NoError(t, err)
	require.Equal(t, head, now, "importing again made commits")
}
