package archives_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/storetest"
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
	s := storetest.New(t)
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
		"tool result hello",
	}, parts(t, thread))
	require.Equal(t, map[string]string{"": "m1 m2 m0", `{"aside":"agent m2$$c2"}`: "m1 m2 n1"}, histories(t, thread))
	head, err := s.View().Head(bg)
	require.NoError(t, err)
	imported(t, s, path)
	now, err := s.View().Head(bg)
	require.NoError(t, err)
	require.Equal(t, head, now, "importing again made commits")
}

// The database of Crush is also read as it was when Crush was named OpenCode: under another name, without a column for
// providers, and with subagents named after their calls.
func TestCrushAsOpenCode(t *testing.T) {
	const schema = `
CREATE TABLE goose_db_version (id INTEGER PRIMARY KEY AUTOINCREMENT, version_id INTEGER NOT NULL, is_applied INTEGER NOT NULL, tstamp TIMESTAMP DEFAULT (datetime('now')));
CREATE TABLE sessions (id TEXT PRIMARY KEY, parent_session_id TEXT, title TEXT NOT NULL, message_count INTEGER NOT NULL DEFAULT 0, prompt_tokens INTEGER NOT NULL DEFAULT 0,
	completion_tokens INTEGER NOT NULL DEFAULT 0, cost REAL NOT NULL DEFAULT 0.0, updated_at INTEGER NOT NULL, created_at INTEGER NOT NULL, summary_message_id TEXT);
CREATE TABLE files (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, path TEXT NOT NULL, content TEXT NOT NULL, version TEXT NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL);
CREATE TABLE messages (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, role TEXT NOT NULL, parts TEXT NOT NULL default '[]', model TEXT, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, finished_at INTEGER);`
	const rows = `
INSERT INTO sessions (id, parent_session_id, title, cost, updated_at, created_at) VALUES ('s1', NULL, 'Ask another', 0.25, 1767225609, 1767225600), ('call_1', 's1', 'New Agent Session', 0.1, 1767225602, 1767225601);
INSERT INTO messages (id, session_id, role, parts, model, created_at, updated_at) VALUES
	('m1', 's1', 'user', '[{"type":"text","data":{"text":"Ask another"}},{"type":"finish","data":{"reason":"stop","time":0}}]', '', 1767225600, 1767225600),
	('m2', 's1', 'assistant', '[{"type":"tool_call","data":{"id":"call_1","name":"agent","input":"{\"prompt\":\"Help\"}","type":"function","finished":true}},{"type":"finish","data":{"reason":"tool_use","time":1767225602}}]', 'm', 1767225601, 1767225602),
	('m3', 's1', 'tool', '[{"type":"tool_result","data":{"tool_call_id":"call_1","name":"","content":"It helps.","metadata":"","is_error":false}}]', '', 1767225602, 1767225602),
	('n1', 'call_1', 'user', '[{"type":"text","data":{"text":"Help"}}]', '', 1767225601, 1767225601),
	('n2', 'call_1', 'assistant', '[{"type":"text","data":{"text":"It helps."}}]', 'm', 1767225602, 1767225602);`
	path := t.TempDir() + "/opencode.db"
	execute(t, path, schema, rows)
	s := storetest.New(t)
	r := imported(t, s, path)
	require.Equal(t, []string{"crush"}, r.Formats)
	require.Empty(t, r.Skipped)
	thread, err := s.FindThread(bg, "s1")
	require.NoError(t, err)
	info, err := thread.Info(bg)
	require.NoError(t, err)
	require.Equal(t, "Ask another", info.Title)
	require.Equal(t, []string{"user text Ask another", `assistant call agent {"prompt":"Help"}`, "tool result It helps."}, parts(t, thread))
	require.Equal(t, map[string]string{"": "m1 m2 m3", `{"aside":"agent call_1"}`: "m1 m2 n1 n2"}, histories(t, thread))
}

// histories returns the source ids of the messages of each context of a thread, by the metadata of the context.
func histories(t *testing.T, thread *lineage.Thread) map[string]string {
	found := make(map[string]string)
	for c, err := range thread.Contexts(bg) {
		require.NoError(t, err)
		state, err := c.Info(bg)
		require.NoError(t, err)
		var ids []string
		for e, err := range c.Entries(bg, lineage.Window{}) {
			require.NoError(t, err)
			ids = append(ids, e.SourceID)
		}
		found[string(state.Metadata)] = strings.Join(ids, " ")
	}
	return found
}

// What Crush wrote is read: a conversation with calls and a failed request, one with a subagent, and one that it summarized.
func TestDatabaseOfCrush(t *testing.T) {
	s := storetest.New(t)
	r := imported(t, s, "testdata/crush/crush.db.gz")
	require.Equal(t, []string{"crush"}, r.Formats)
	require.Empty(t, r.Skipped)
	require.EqualValues(t, 3, r.Conversations)
	require.EqualValues(t, 27, r.Messages)
	const thinks = "assistant reasoning Let me think about it."
	for id, want := range map[string][]string{
		"bf267117-c605-4ae7-b481-6aa7fd9db60a": {
			"user text Name a colour.", thinks, "assistant text Blue. And a wörd 🌍.",
			"user text Please list the files.", "assistant text I will look.", `assistant call ls {"path": "."}`,
			"tool result \n- /home/demo/todo/\n  - crush.json\n  - readme.md\n", thinks, "assistant text Done: I saw 49 characters.",
			"user text And write a file.", "assistant text I will look.",
			`assistant call write {"file_path": "/home/demo/todo/hello.txt", "content": "hello\nw\u00f6rld \ud83c\udf0d\n"}`,
			"tool result <result>\nFile successfully written: /home/demo/todo/hello.txt\n</result>", thinks, "assistant text Done: I saw 71 characters.",
			"user text Now fail, please.",
			`assistant data {"type":"finish","data":{"reason":"error","time":1795989562,"message":"Bad Request","details":"the model is not available"}}`,
			"user text And go on.", thinks, "assistant text Blue. And a wörd 🌍.",
		},
		"4445f5b1-73e7-4815-9ddc-cee5624b5057": {
			"user text Please delegate this.", "assistant text I will look.", `assistant call agent {"prompt": "Please list the files of the sub task."}`,
			"tool result Done: I saw 63 characters.", thinks, "assistant text Done: I saw 26 characters.",
		},
		"3477cf6e-ab40-4646-8533-f1ea6aaf38eb": {
			"user text Say something long.", thinks, "assistant text Blue. And a wörd 🌍.", thinks, "assistant text Blue. And a wörd 🌍.", // a summary
			"user text What did we say?", thinks, "assistant text Blue. And a wörd 🌍.",
		},
	} {
		thread, err := s.FindThread(bg, id)
		require.NoError(t, err)
		require.Equal(t, want, parts(t, thread), id)
	}
}
