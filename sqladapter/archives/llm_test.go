package archives_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/storetest"
	"github.com/lineage-store/lineage/lineage"
)

const llmSchema = `
CREATE TABLE conversations (id TEXT PRIMARY KEY, name TEXT, model TEXT);
CREATE TABLE schemas (id TEXT PRIMARY KEY, content TEXT);
CREATE TABLE responses (id TEXT PRIMARY KEY, model TEXT, prompt TEXT, system TEXT, prompt_json TEXT, options_json TEXT, response TEXT,
	response_json TEXT, conversation_id TEXT REFERENCES conversations(id), duration_ms INTEGER, datetime_utc TEXT, input_tokens INTEGER,
	output_tokens INTEGER, token_details TEXT, schema_id TEXT, resolved_model TEXT);
CREATE TABLE fragments (id INTEGER PRIMARY KEY, hash TEXT, content TEXT, datetime_utc TEXT, source TEXT);
CREATE TABLE prompt_fragments (response_id TEXT, fragment_id INTEGER, "order" INTEGER);
CREATE TABLE system_fragments (response_id TEXT, fragment_id INTEGER, "order" INTEGER);
CREATE TABLE attachments (id TEXT PRIMARY KEY, type TEXT, path TEXT, url TEXT, content BLOB);
CREATE TABLE prompt_attachments (response_id TEXT, attachment_id TEXT, "order" INTEGER);
CREATE TABLE tools (id INTEGER PRIMARY KEY, hash TEXT, name TEXT, description TEXT, input_schema TEXT, plugin TEXT);
CREATE TABLE tool_calls (id INTEGER PRIMARY KEY, response_id TEXT, tool_id INTEGER, name TEXT, arguments TEXT, tool_call_id TEXT);
CREATE TABLE tool_results (id INTEGER PRIMARY KEY, response_id TEXT, tool_id INTEGER, name TEXT, output TEXT, tool_call_id TEXT, instance_id INTEGER, exception TEXT);`

const llmRows = `
INSERT INTO conversations VALUES ('01c', 'Weather', 'm-4');
INSERT INTO fragments VALUES (1, 'h1', 'A long novel.', '', ''), (2, 'h2', 'House rules.', '', '');
INSERT INTO responses VALUES
	('01r', 'm-4', 'Weather?', 'Be brief.', NULL, '{"temperature": 0.5}', '', '{"big": 12345678901234567890}', '01c', 321, '2025-02-03T04:05:06.789012+00:00', 10, 2, NULL, NULL, 'm-4-0613'),
	('02r', 'm-4', '', 'Be brief.', NULL, '{}', 'Cold.', NULL, '01c', 5, '2025-02-03T04:05:08', 20, 3, '{}', NULL, NULL),
	('03r', 'm-4', 'And this?', 'Be long.', NULL, '{}', 'A picture.', NULL, '01c', 5, '2025-02-03T04:06:00', NULL, NULL, NULL, NULL, NULL),
	('04r', 'm-5', 'Alone', NULL, NULL, '{}', 'Yes.', NULL, NULL, 5, '2025-02-03T04:07:00', NULL, NULL, NULL, NULL, NULL);
INSERT INTO prompt_fragments VALUES ('01r', 1, 0);
INSERT INTO system_fragments VALUES ('03r', 2, 0);
INSERT INTO tool_calls VALUES (1, '01r', NULL, 'weather', '{"city": "Oslo"}', 'call_1');
INSERT INTO tool_results VALUES (1, '02r', NULL, 'weather', '3 °C', 'call_1', NULL, NULL);
INSERT INTO attachments VALUES ('at1', 'image/png', '/home/ada/pic.png', NULL, x'89504e47'), ('at2', 'image/png', '/etc/passwd', NULL, NULL);
INSERT INTO prompt_attachments VALUES ('03r', 'at1', 0), ('03r', 'at2', 1);`

func TestLLMLog(t *testing.T) {
	path := t.TempDir() + "/logs.db"
	execute(t, path, llmSchema, llmRows)
	s := storetest.New(t)
	r := imported(t, s, path)
	require.Equal(t, []string{"llm"}, r.Formats)
	require.Empty(t, r.Skipped)
	require.Empty(t, r.Repaired)
	require.EqualValues(t, 2, r.Conversations)
	require.Equal(t, map[string]string{"main*": "system: Be brief.\nuser: A long novel.\nWeather?\n" +
		`assistant: {"content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"weather","arguments":"{\"city\": \"Oslo\"}"}}]}` + "\n" +
		answered + "assistant: Cold.\nsystem: House rules.\nBe long.\nuser: And this?\nfile pic.png: \x89PNG\nassistant: A picture.\n"}, said(t, s, "01c"))
	require.Equal(t, map[string]string{"main*": "user: Alone\nassistant: Yes.\n"}, said(t, s, "04r"))

	thread, err := s.FindThread(bg, "01c")
	require.NoError(t, err)
	answer, err := thread.Find(bg, "02r/result-1")
	require.NoError(t, err)
	requireCallID(t, answer)
	info, err := thread.Info(bg)
	require.NoError(t, err)
	require.Equal(t, "Weather", info.Title)
	e, err := thread.Find(bg, "01r")
	require.NoError(t, err)
	require.Equal(t, "m-4", e.Origin.ModelID)
	require.Equal(t, "2025-02-03 04:05:06.789 +0000 UTC", e.CreatedAt.String())
	require.JSONEq(t, `{"resolved_model":"m-4-0613","duration_ms":321,"input_tokens":10,"output_tokens":2,"options_json":{"temperature":0.5},"response_json":{"big":12345678901234567890}}`, string(e.Metadata))
	require.Contains(t, string(e.Metadata), "12345678901234567890")
	// A file that is not in the database is named, never opened.
	e, err = thread.Find(bg, "03r/prompt")
	require.NoError(t, err)
	require.JSONEq(t, `{"attachments":[{"id":"at2","type":"image/png","path":"/etc/passwd"}]}`, string(e.Metadata))
	importedAgain(t, s, path)

	execute(t, path, `INSERT INTO responses (id, model, prompt, response, conversation_id, datetime_utc) VALUES ('05r', 'm-4', 'More?', 'No.', '01c', '2025-02-03T05:00:00')`)
	require.EqualValues(t, 2, imported(t, s, path).NewMessages)
}

const llmTree = `
CREATE TABLE messages (hash TEXT PRIMARY KEY, parent_hash TEXT REFERENCES messages(hash), role TEXT, provider_metadata TEXT);
CREATE TABLE parts (id INTEGER PRIMARY KEY, message_hash TEXT, position INTEGER, type TEXT, tool_name TEXT, text TEXT, payload TEXT);
CREATE TABLE part_attachments (part_id INTEGER, attachment_id TEXT, "order" INTEGER);
CREATE TABLE part_fragments (part_id INTEGER, fragment_id INTEGER, "order" INTEGER);
CREATE TABLE threads (id TEXT PRIMARY KEY, name TEXT, tip_message_hash TEXT, forked_from TEXT, datetime_utc TEXT);
CREATE TABLE turns (id TEXT PRIMARY KEY, thread_id TEXT, parent_message_hash TEXT, tip_message_hash TEXT, model TEXT, resolved_model TEXT, options_json TEXT,
	schema_id TEXT, input_tokens INTEGER, output_tokens INTEGER, token_details TEXT, duration_ms INTEGER, datetime_utc TEXT);
INSERT INTO messages VALUES ('s', NULL, 'system', NULL), ('u', 's', 'user', NULL), ('a', 'u', 'assistant', '{"p": 1}'), ('t', 'a', 'tool', NULL), ('b', 't', 'assistant', NULL), ('c', 'u', 'assistant', NULL);
INSERT INTO parts VALUES
	(1, 's', 0, 'text', NULL, 'Be brief.', NULL),
	(2, 'u', 0, 'text', NULL, NULL, '{"text_ref": [{"fragment": 1}, {"literal": " Weather?"}]}'),
	(3, 'u', 1, 'attachment', NULL, NULL, '{"attachment": "at1"}'),
	(4, 'a', 0, 'reasoning', NULL, 'hm', '{"redacted": false}'),
	(5, 'a', 1, 'tool_call', 'weather', NULL, '{"name": "weather", "arguments": {"z": 1, "a": 2}, "tool_call_id": "call_1"}'),
	(6, 't', 0, 'tool_result', 'weather', NULL, '{"name": "weather", "output": "3 °C", "tool_call_id": "call_1"}'),
	(7, 'b', 0, 'text', NULL, 'Cold.', NULL),
	(8, 'c', 0, 'text', NULL, 'No idea.', NULL);
INSERT INTO part_attachments VALUES (3, 'at1', 0);
INSERT INTO threads VALUES ('01c', 'Weather', 'b', NULL, '2025-02-03T04:05:06+00:00'), ('fork', 'Weather 2', 'c', '01c', '2025-02-03T05:05:06+00:00'), ('empty', 'x', NULL, NULL, NULL);
INSERT INTO turns VALUES ('01r', '01c', 'u', 'a', 'm-4', NULL, '{}', NULL, 1, 2, NULL, 3, '2025-02-03T04:05:07+00:00'), ('02r', '01c', 't', 'b', 'm-4', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2025-02-03T04:05:09+00:00');`

// With the newer tables, a thread that is also in the older ones is read once.
func TestLLMTree(t *testing.T) {
	path := t.TempDir() + "/logs.db"
	execute(t, path, llmSchema, llmRows, llmTree)
	s := storetest.New(t)
	r := imported(t, s, path)
	require.Empty(t, r.Skipped)
	require.Empty(t, r.Repaired)
	require.EqualValues(t, 3, r.Conversations)
	const begins = "system: Be brief.\nuser: A long novel. Weather?\nfile pic.png: \x89PNG\n"
	require.Equal(t, map[string]string{"main*": begins +
		`assistant: {"parts":[{"type":"reasoning","redacted":false,"text":"hm"},{"type":"tool_call","name":"weather","arguments":{"z":1,"a":2},"tool_call_id":"call_1"}]}` + "\n" +
		`tool: {"parts":[{"type":"tool_result","name":"weather","output":"3 °C","tool_call_id":"call_1"}]}` + "\nassistant: Cold.\n"}, said(t, s, "01c"))
	require.Equal(t, map[string]string{"main*": begins + "assistant: No idea.\n"}, said(t, s, "fork"))
	stats, err := s.Stats(bg)
	require.NoError(t, err)
	require.EqualValues(t, 5+3+2, stats.Spans, "each thread has messages of its own")
	thread, err := s.FindThread(bg, "01c")
	require.NoError(t, err)
	e, err := thread.Find(bg, "a")
	require.NoError(t, err)
	require.Equal(t, "m-4", e.Origin.ModelID)
	answer, err := thread.Find(bg, "t")
	require.NoError(t, err)
	requireCallID(t, answer)
	require.JSONEq(t, `{"provider_metadata":{"p":1},"turn_id":"01r","input_tokens":1,"output_tokens":2,"duration_ms":3}`, string(e.Metadata))
	importedAgain(t, s, path)
}

func TestLLMTreeDamage(t *testing.T) {
	path := t.TempDir() + "/logs.db"
	execute(t, path, llmTree,
		`INSERT INTO messages VALUES ('x', 'y', 'user', NULL), ('y', 'x', 'user', NULL), ('d', 'nowhere', 'user', NULL), ('p', NULL, 'user', NULL)`,
		`INSERT INTO parts VALUES (20, 'd', 0, 'text', NULL, 'orphan', NULL), (21, 'p', 0, 'text', NULL, NULL, '{"broken')`,
		`INSERT INTO threads VALUES ('cycle', '', 'x', NULL, NULL), ('orphan', '', 'd', 'cycle', NULL), ('broken', '', 'p', NULL, NULL), ('lost', '', 'not there', NULL, NULL)`)
	s := storetest.New(t)
	r := imported(t, s, path)
	require.Len(t, r.Skipped, 2, "%v", r.Skipped)
	for _, d := range r.Skipped {
		require.Error(t, d)
	}
	require.Contains(t, r.Skipped[1].Error(), "thread cycle: malformed: message x is its own ancestor")
	require.Equal(t, map[string]string{"main*": "user: orphan\n"}, said(t, s, "orphan"))
	for _, gone := range []string{"cycle", "broken", "lost"} {
		_, err := s.FindThread(bg, gone)
		require.ErrorIs(t, err, lineage.ErrNotFound)
	}
}

func TestDetection(t *testing.T) {
	dir := t.TempDir()
	execute(t, dir+"/old", llmSchema)
	execute(t, dir+"/new", llmTree)
	execute(t, dir+"/graph", graphSchema)
	execute(t, dir+"/quoted", `CREATE TABLE "checkpoints" (x)`, `CREATE TABLE [writes] (x)`)
	execute(t, dir+"/other", `CREATE TABLE chats (id TEXT); CREATE TABLE messages (id TEXT); CREATE TABLE checkpoints_of_others (id)`)
	want := map[string]string{"old": "llm", "new": "llm", "graph": "langgraph", "quoted": "langgraph", "other": ""}
	for name, format := range want {
		got := ""
		for _, f := range allFormats() {
			if f.Detect(headOf(t, dir+"/"+name)) {
				got += f.Name
			}
		}
		require.Equal(t, format, got, name)
	}
}

// Text that is not UTF-8 is stored and found again.
func TestLLMInvalidText(t *testing.T) {
	path := t.TempDir() + "/logs.db"
	bad := "CAST(x'ff6100' AS TEXT)"
	execute(t, path, llmSchema,
		`INSERT INTO conversations VALUES (`+bad+`, `+bad+`, `+bad+`)`,
		`INSERT INTO responses (id, model, prompt, system, response, conversation_id, datetime_utc, resolved_model, options_json) VALUES
			(`+bad+`, `+bad+`, `+bad+`, `+bad+`, `+bad+`, `+bad+`, `+bad+`, `+bad+`, `+bad+`)`,
		`INSERT INTO tool_calls VALUES (1, `+bad+`, 1, `+bad+`, `+bad+`, `+bad+`)`,
		`INSERT INTO tool_results VALUES (1, `+bad+`, 1, `+bad+`, `+bad+`, `+bad+`, NULL, NULL)`)
	s := storetest.New(t)
	r := imported(t, s, path)
	require.Empty(t, r.Skipped)
	require.EqualValues(t, 4, r.NewMessages)
	importedAgain(t, s, path)
}
