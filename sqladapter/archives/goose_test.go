package archives_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/storetest"
	"github.com/lineage-store/lineage/lineage"
	messages "github.com/lineage-store/lineage/lineage/message"
	"github.com/lineage-store/lineage/lineage/usage"
)

// gooseSchema is the schema of version 15 without its indexes.
const gooseSchema = `
CREATE TABLE schema_version (version INTEGER PRIMARY KEY, applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP);
CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT NOT NULL DEFAULT '', description TEXT NOT NULL DEFAULT '', user_set_name BOOLEAN DEFAULT FALSE, session_type TEXT NOT NULL DEFAULT 'user',
	working_dir TEXT NOT NULL, created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, extension_data TEXT DEFAULT '{}', accumulated_input_tokens INTEGER,
	schedule_id TEXT, recipe_json TEXT, provider_name TEXT, model_config_json TEXT, parent_session_id TEXT);
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT, session_id TEXT NOT NULL REFERENCES sessions(id), role TEXT NOT NULL, content_json TEXT NOT NULL, created_timestamp INTEGER NOT NULL,
	timestamp TIMESTAMP DEFAULT CURRENT_TIMESTAMP, tokens INTEGER, metadata_json TEXT);
CREATE TABLE usage_ledger (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, created_timestamp INTEGER NOT NULL, model TEXT, input_tokens INTEGER, output_tokens INTEGER, total_tokens INTEGER,
	cache_read_tokens INTEGER, cache_write_tokens INTEGER, cost REAL, cost_source TEXT, is_compaction INTEGER DEFAULT 0);`

const gooseRows = `
INSERT INTO sessions (id, name, working_dir, created_at, updated_at, model_config_json, provider_name) VALUES ('20260101_1', 'Greet', '/w', '2026-01-01 00:00:00', '2026-01-01 00:01:00', '{"model_name":"claude-sonnet-4-20250514"}', 'anthropic');
INSERT INTO sessions (id, name, session_type, working_dir, parent_session_id) VALUES ('20260101_2', 'Helper', 'sub_agent', '/w', '20260101_1');
INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp, metadata_json) VALUES
	('m1', '20260101_1', 'user', '[{"type":"text","text":"Say hello"}]', 1767225600, '{"userVisible":true,"agentVisible":true}'),
	('m2', '20260101_1', 'assistant', '[{"type":"thinking","thinking":"Easy","signature":"x"},{"type":"text","text":"I run it."},{"type":"toolRequest","id":"c1","toolCall":{"status":"success","value":{"name":"developer__shell","arguments":{"command":"echo hello"}}}}]', 1767225601, '{"userVisible":true,"agentVisible":true}'),
	('m3', '20260101_1', 'user', '[{"type":"toolResponse","id":"c1","toolResult":{"status":"success","value":{"content":[{"type":"text","text":"hello"}],"isError":false}}}]', 1767225602, NULL),
	('m4', '20260101_1', 'assistant', '[{"type":"text","text":"Done"}]', 1767225602, NULL),
	('m1', '20260101_2', 'user', '[{"type":"text","text":"Help"}]', 1767225601, NULL), ('m5', '20260101_1', 'user', 'broken', 1767225603, NULL);
INSERT INTO usage_ledger (session_id, created_timestamp, model, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost) VALUES
	('20260101_1', 1767225601, 'claude-sonnet-4-20250514', 100, 7, 40, 10, 0.25), ('20260101_1', 1767225602, NULL, 120, 5, NULL, NULL, NULL);`

// The messages of Goose are read with their calls and results, subagents are contexts, and what the answers cost counts once.
func TestGoose(t *testing.T) {
	path := t.TempDir() + "/sessions.db"
	execute(t, path, gooseSchema, gooseRows)
	s := storetest.New(t)
	r := imported(t, s, path)
	require.Equal(t, []string{"goose"}, r.Formats)
	require.EqualValues(t, 1, r.Conversations)
	require.Len(t, r.Skipped, 1)
	require.Contains(t, r.Skipped[0].Error(), "message 6")
	thread := theThread(t, s, "20260101_1@")
	info, err := thread.Info(bg)
	require.NoError(t, err)
	require.Equal(t, "Greet", info.Title)
	require.JSONEq(t, `{"agent":"goose","model":"claude-sonnet-4-20250514","cwd":"/w","provider":"anthropic"}`, withoutArchive(t, info.Metadata))
	require.Equal(t, []string{"user text Say hello", "assistant reasoning Easy", "assistant text I run it.", `assistant call developer__shell {"command":"echo hello"}`, "user result hello", "assistant text Done"}, parts(t, thread))

	// Goose compacts: all messages are written again, those before the summary are no longer for a model.
	execute(t, path, `CREATE TABLE old AS SELECT * FROM messages WHERE session_id = '20260101_1' ORDER BY id; DELETE FROM messages WHERE session_id = '20260101_1';
		INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp, metadata_json) SELECT message_id, session_id, role, content_json, created_timestamp, '{"userVisible":true,"agentVisible":false}' FROM old WHERE content_json <> 'broken';
		INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp, metadata_json) VALUES ('m6', '20260101_1', 'user', '[{"type":"text","text":"A summary"}]', 1767225609, '{"userVisible":false,"agentVisible":true}')`)
	for range 2 {
		imported(t, s, path)
	}
	require.Equal(t, 7, len(parts(t, thread)), "compaction changed messages")
	var contexts []string
	for c, err := range thread.Contexts(bg) {
		require.NoError(t, err)
		state, err := c.Info(bg)
		require.NoError(t, err)
		contexts = append(contexts, string(state.Metadata))
	}
	require.ElementsMatch(t, []string{"", `{"aside":"agent 20260101_2"}`, `{"aside":"log"}`}, contexts)
	x, err := usage.Open(bg, s, t.TempDir(), usage.Options{})
	require.NoError(t, err)
	defer x.Close()
	require.NoError(t, x.Update(bg))
	report, err := x.Report(bg, usage.Query{})
	require.NoError(t, err)
	n := func(k messages.TokenKind) int64 { return report.Total.Tokens[k].N }
	require.Equal(t, []int64{2, 50 + 120, 40, 10, 12}, []int64{report.Total.Requests, n(messages.Input), n(messages.CachedInput), n(messages.CacheWrite), n(messages.Output)})
	require.Equal(t, "0.25", report.Total.Stated.String())
}

// Goose counts its sessions by the day: those of two machines are two, also if their ids are equal.
func TestGooseOfTwoMachines(t *testing.T) {
	s := storetest.New(t)
	for _, change := range []string{``, `UPDATE sessions SET working_dir = '/other'`, `UPDATE sessions SET created_at = '2026-01-01 00:00:09'`, `UPDATE sessions SET name = 'The first again'`} {
		path := t.TempDir() + "/sessions.db"
		execute(t, path, gooseSchema, gooseRows, change)
		imported(t, s, path)
	}
	n := 0
	for _, err := range s.Threads(bg, lineage.ThreadQuery{}) {
		require.NoError(t, err)
		n++
	}
	require.Equal(t, 3, n)
}

// theThread returns the thread whose id begins with a text.
func theThread(t *testing.T, s *lineage.Store, id string) (thread *lineage.Thread) {
	t.Helper()
	for found, err := range s.Threads(bg, lineage.ThreadQuery{}) {
		require.NoError(t, err)
		info, err := found.Thread.Info(bg)
		require.NoError(t, err)
		if strings.HasPrefix(info.SourceID, id) {
			require.Nil(t, thread)
			thread = found.Thread
		}
	}
	require.NotNil(t, thread)
	return thread
}

// The schema of the first versions, without ids of messages, is read.
func TestGooseOfFirstVersions(t *testing.T) {
	path := t.TempDir() + "/sessions.db"
	execute(t, path, `CREATE TABLE sessions (id TEXT PRIMARY KEY, description TEXT, working_dir TEXT NOT NULL, created_at TIMESTAMP, updated_at TIMESTAMP);
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, role TEXT NOT NULL, content_json TEXT NOT NULL, created_timestamp INTEGER NOT NULL);
INSERT INTO sessions VALUES ('a', 'A', '/a', NULL, NULL), ('b', 'B', '/b', NULL, NULL);
INSERT INTO messages (session_id, role, content_json, created_timestamp) VALUES ('a', 'user', '[{"type":"text","text":"One"}]', 1767225600), ('b', 'user', '[{"type":"text","text":"Two"}]', 1767225600), ('a', 'assistant', '[{"type":"text","text":"Three"}]', 1767225600);`)
	s := storetest.New(t)
	require.EqualValues(t, 2, imported(t, s, path).NewConversations)
	thread := theThread(t, s, "a@")
	require.Equal(t, []string{"user text One", "assistant text Three"}, parts(t, thread))
	e, err := thread.Find(bg, "msg_a_3")
	require.NoError(t, err)
	require.NotNil(t, e)

	// The session of another machine with the same id is another one. It does not state when it was created.
	other := t.TempDir() + "/sessions.db"
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(other, b, 0o600))
	execute(t, other, `UPDATE messages SET content_json = '[{"type":"text","text":"Other"}]' WHERE id = 1`)
	require.EqualValues(t, 1, imported(t, s, other).NewConversations)
	importedAgain(t, s, path)
}

// withoutArchive returns metadata without what the import keeps in it.
func withoutArchive(t *testing.T, metadata []byte) string {
	var m map[string]any
	require.NoError(t, json.Unmarshal(metadata, &m))
	delete(m, "_archive")
	b, err := json.Marshal(m)
	require.NoError(t, err)
	return string(b)
}

// parts returns those of the messages of the active branch.
func parts(t *testing.T, thread *lineage.Thread) (lines []string) {
	active, err := thread.Active(bg)
	require.NoError(t, err)
	entries, err := active.All(bg)
	require.NoError(t, err)
	for _, e := range entries {
		for _, m := range messages.Decode(e.Body, e.Type, e.Role) {
			for i := range m.Parts {
				p := &m.Parts[i]
				text := p.String()
				switch p.Kind {
				case messages.CallKind:
					text = p.Tool + " " + p.Arguments()
				case messages.ResultKind:
					if text = p.OutputText(); p.Failed {
						text = "failed: " + text
					}
				}
				lines = append(lines, m.Role+" "+p.Kind.String()+" "+text)
			}
		}
	}
	return lines
}
