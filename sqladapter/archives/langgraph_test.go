package archives_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/storetest"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
)

var (
	ask    = message("HumanMessage", "h1", "Weather in Oslo?")
	call   = message("AIMessage", "a1", "", pair{"tool_calls", []any{object{{"name", "weather"}, {"args", object{{"city", "Oslo"}}}, {"id", "call_1"}, {"type", "tool_call"}}}}, pair{"usage_metadata", object{{"input_tokens", 12}}})
	result = message("ToolMessage", "t1", "3 °C", pair{"tool_call_id", "call_1"}, pair{"status", "success"})
	answer = message("AIMessage", "a2", "Cold.")
	other  = message("AIMessage", "a3", "Chilly.")
)

// weather is a thread with five checkpoints and one fork.
func weather() []checkpoint {
	return []checkpoint{
		{thread: "t-1", id: "c1", more: object{{"__start__", object{{"messages", []any{ask}}}}}, messages: []any{}},
		{thread: "t-1", id: "c2", parent: "c1", messages: []any{ask}},
		{thread: "t-1", id: "c3", parent: "c2", messages: []any{ask, call}, more: object{{"steps", 2}, {"note", []byte{1, 2}}}},
		{thread: "t-1", id: "c4", parent: "c3", messages: []any{ask, call, result, answer}},
		{thread: "t-1", id: "c5", parent: "c3", messages: []any{ask, call, result, other}},
		{thread: "t-2", id: "c6", messages: []any{ask, call, result, answer}},
	}
}

const called = `assistant: {"content":"","tool_calls":[{"name":"weather","args":{"city":"Oslo"},"id":"call_1","type":"tool_call"}]}` + "\n"

func TestLangGraph(t *testing.T) {
	path := graphFile(t, weather()...)
	s := storetest.New(t)
	r := imported(t, s, path)
	require.Equal(t, []string{"langgraph"}, r.Formats)
	require.Empty(t, r.Skipped)
	require.Empty(t, r.Repaired)
	require.EqualValues(t, 2, r.Conversations)
	got := said(t, s, "t-1")
	require.Len(t, got, 2)
	require.Equal(t, "user: Weather in Oslo?\n"+called+answered+"assistant: Chilly.\n", got["main*"])
	delete(got, "main*")
	for _, text := range got {
		require.Equal(t, "user: Weather in Oslo?\n"+called+answered+"assistant: Cold.\n", text)
	}
	require.Equal(t, map[string]string{"main*": "user: Weather in Oslo?\n" + called + answered + "assistant: Cold.\n"}, said(t, s, "t-2"))

	thread, err := s.FindThread(bg, "t-1")
	require.NoError(t, err)
	e, err := thread.Find(bg, "t1")
	require.NoError(t, err)
	require.JSONEq(t, `{"status":"success"}`, string(e.Metadata))
	requireCallID(t, e)
	require.Equal(t, "2025-03-01 10:00:04.123 +0000 UTC", e.CreatedAt.String())

	// Other data of the checkpoints is imported too.
	c, err := thread.Find(bg, "checkpoint /c3")
	require.NoError(t, err)
	var state map[string]any
	require.NoError(t, json.Unmarshal(c.Body, &state))
	require.Equal(t, map[string]any{"steps": 2.0, "note": map[string]any{"__bytes__": "AQI="}}, state["channel_values"])
	require.Equal(t, "c2", state["parent"])
	require.Equal(t, "a1", state["tip"])
	importedAgain(t, s, path)
}

// Importing a file that has grown adds what is new.
func TestLangGraphGrows(t *testing.T) {
	path := graphFile(t, weather()[:3]...)
	s := storetest.New(t)
	require.EqualValues(t, 2, imported(t, s, path).Messages)
	more := graphFile(t, weather()...)
	r := imported(t, s, more)
	require.EqualValues(t, 2, r.Conversations)
	require.Equal(t, "user: Weather in Oslo?\n"+called+answered+"assistant: Chilly.\n", said(t, s, "t-1")["main*"])
	importedAgain(t, s, more)
}

// A thread with a thousand checkpoints, each with all messages so far.
func TestLangGraphSharesSnapshots(t *testing.T) {
	var checkpoints []checkpoint
	var messages []any
	parent := ""
	const n = 120
	for i := range n {
		messages = append(messages, message("HumanMessage", "", strings.Repeat("x", i+1)))
		id := "c" + string(rune('a'+i/100)) + string(rune('a'+i/10%10)) + string(rune('0'+i%10))
		checkpoints = append(checkpoints, checkpoint{thread: "t", id: id, parent: parent, messages: append([]any(nil), messages...)})
		parent = id
	}
	path := graphFile(t, checkpoints...)
	s := storetest.New(t)
	r := imported(t, s, path)
	require.Empty(t, r.Skipped)
	require.EqualValues(t, n, r.Messages)
	branches := said(t, s, "t")
	require.Len(t, branches, 1)
	require.Equal(t, n, strings.Count(branches["main*"], "\n"))
	importedAgain(t, s, path)
}

func TestLangGraphFormsOfMessages(t *testing.T) {
	lc := `{"v":1,"ts":"2024-01-01T00:00:00+00:00","id":"c1","channel_values":{"messages":[
		{"lc":1,"type":"constructor","id":["langchain","schema","messages","HumanMessage"],"kwargs":{"content":"hi","id":"1","type":"human"}},
		{"type":"ai","data":{"content":"hello","id":"2","additional_kwargs":{"function_call":{"name":"f","arguments":"{}"}}}},
		{"role":"user","content":[{"type":"text","text":"look"}]},
		["system","be brief"],
		{"lc":1,"type":"constructor","id":["langchain","schema","messages","ChatMessage"],"kwargs":{"content":"aside","role":"narrator"}},
		{"unknown":"thing"}]}}`
	path := graphFile(t, checkpoint{thread: "t", id: "c1", kind: "json", raw: []byte(lc)})
	s := storetest.New(t)
	require.Empty(t, imported(t, s, path).Skipped)
	require.Equal(t, "user: hi\n"+
		`assistant: {"content":"hello","function_call":{"name":"f","arguments":"{}"}}`+"\n"+
		`user: [{"type":"text","text":"look"}]`+"\n"+
		"system: be brief\nnarrator: aside\n"+`message: {"unknown":"thing"}`+"\n", said(t, s, "t")["main*"])
}

func TestLangGraphBlobs(t *testing.T) {
	raw := `{"v":4,"ts":"2025-01-01T00:00:00+00:00","id":"c1","channel_values":{"n":1},"channel_versions":{"messages":"0002.5","gone":3,"bad":"1"}}`
	path := graphFile(t, checkpoint{thread: "t", id: "c1", kind: "json", raw: []byte(raw)})
	execute(t, address(path),
		`CREATE TABLE checkpoint_blobs (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '', channel TEXT NOT NULL, version TEXT NOT NULL, type TEXT NOT NULL, blob BLOB)`,
		`INSERT INTO checkpoint_blobs VALUES ('t', '', 'gone', '3', 'empty', NULL), ('t', '', 'bad', '1', 'pickle', x'80'),
			('t', '', 'messages', '0002.5', 'msgpack', x'`+hexOf(pack(nil, []any{ask, answer}))+`')`)
	s := storetest.New(t)
	r := imported(t, s, path)
	require.Equal(t, "user: Weather in Oslo?\nassistant: Cold.\n", said(t, s, "t")["main*"])
	require.Len(t, r.Skipped, 1)
	require.ErrorIs(t, r.Skipped[0], archive.ErrRefused)
	require.Contains(t, r.Skipped[0].Error(), `channel "bad"`)
}

func hexOf(b []byte) string {
	const digits = "0123456789abcdef"
	var s strings.Builder
	for _, c := range b {
		s.WriteByte(digits[c>>4])
		s.WriteByte(digits[c&15])
	}
	return s.String()
}

// Writes after the last checkpoint are in none.
func TestLangGraphPendingWrites(t *testing.T) {
	path := graphFile(t, weather()[:2]...)
	dsn := address(path)
	execute(t, dsn, `INSERT INTO writes VALUES ('t-1', '', 'c1', 'k', 0, 'messages', 'msgpack', x'`+hexOf(pack(nil, []any{ask}))+`'),
		('t-1', '', 'c2', 'k', 0, 'messages', 'msgpack', x'`+hexOf(pack(nil, []any{answer}))+`'), ('t-1', '', 'c2', 'k', 1, 'other', 'pickle', x'80')`)
	s := storetest.New(t)
	r := imported(t, s, path)
	require.Len(t, r.Skipped, 1)
	require.ErrorIs(t, r.Skipped[0], archive.ErrRefused)
	require.Contains(t, r.Skipped[0].Error(), "write /c2/k/1")
	thread, err := s.FindThread(bg, "t-1")
	require.NoError(t, err)
	e, err := thread.Find(bg, "write /c2/k/0")
	require.NoError(t, err)
	require.Contains(t, string(e.Body), `"content":"Cold."`)
	_, err = thread.Find(bg, "write /c1/k/0")
	require.ErrorIs(t, err, lineage.ErrNotFound)
	importedAgain(t, s, path)

	addCheckpoints(t, dsn, weather()[2:5]...)
	require.Empty(t, imported(t, s, path).Repaired)
	importedAgain(t, s, path)
}

// The states of a subgraph are a separate history.
func TestLangGraphNamespaces(t *testing.T) {
	path := graphFile(t,
		checkpoint{thread: "t", id: "c1", messages: []any{ask, answer}},
		checkpoint{thread: "t", namespace: "child:1", id: "c2", messages: []any{ask, other}})
	s := storetest.New(t)
	r := imported(t, s, path)
	require.Empty(t, r.Repaired)
	require.Equal(t, map[string]string{"main*": "user: Weather in Oslo?\nassistant: Cold.\n"}, said(t, s, "t"))
	thread, err := s.FindThread(bg, "t")
	require.NoError(t, err)
	e, err := thread.Find(bg, "child:1/a3")
	require.NoError(t, err)
	require.Equal(t, "Chilly.", string(e.Body))
	require.EqualValues(t, 2, e.Position)
	importedAgain(t, s, path)
}

func TestLangGraphDamage(t *testing.T) {
	deep := []byte{}
	for range 10_000 {
		deep = append(deep, 0x91)
	}
	path := graphFile(t,
		checkpoint{thread: "t", id: "c1", messages: []any{ask}},
		checkpoint{thread: "t", id: "c2", kind: "pickle", raw: []byte("\x80\x04.")},
		checkpoint{thread: "t", id: "c3", raw: pack(nil, object{{"v", 1}})[:3]},
		checkpoint{thread: "t", id: "c4", raw: deep},
		checkpoint{thread: "t", id: "c5", raw: []byte{0xdd, 0xff, 0xff, 0xff, 0xff}},
		checkpoint{thread: "t", id: "c6", raw: []byte{0xdf, 0xff, 0xff, 0xff, 0xff}},
		checkpoint{thread: "t", id: "c7", raw: []byte{0xc6, 0xff, 0xff, 0xff, 0xff}},
		checkpoint{thread: "t", id: "c8", kind: "msgpack+aes", raw: []byte("x")},
		checkpoint{thread: "t", id: "c9", kind: "json", raw: []byte("[1]")},
		checkpoint{thread: "t", id: "d0", parent: "c9", messages: []any{ask, answer}},
		checkpoint{thread: "u", id: "c1", kind: "pickle", raw: []byte("x")},
	)
	s := storetest.New(t)
	r := imported(t, s, path)
	require.Len(t, r.Skipped, 9)
	require.ErrorIs(t, r.Skipped[0], archive.ErrRefused)
	require.Contains(t, r.Skipped[0].Error(), "checkpoint c2 of thread t")
	require.Contains(t, r.Skipped[2].Error(), "nested too deeply")
	require.Equal(t, "user: Weather in Oslo?\nassistant: Cold.\n", said(t, s, "t")["main*"])
	_, err := s.FindThread(bg, "u")
	require.ErrorIs(t, err, lineage.ErrNotFound)
}

func TestLangGraphLimits(t *testing.T) {
	path := graphFile(t, checkpoint{thread: "t", id: "c1", messages: []any{ask}}, checkpoint{thread: "t", id: "c2", parent: "c1", messages: []any{ask, message("AIMessage", "a", strings.Repeat("x", 5000))}})
	s := storetest.New(t)
	r, err := importer.Import(bg, s, archive.Path(path), importer.Options{Formats: allFormats(), Limits: archive.Limits{Item: 4000}})
	require.NoError(t, err)
	require.Len(t, r.Skipped, 1)
	require.ErrorIs(t, r.Skipped[0], archive.ErrTooLarge)
	require.Equal(t, "user: Weather in Oslo?\n", said(t, s, "t")["main*"])
}

// A view with the name of a table is not read: it could run forever.
func TestOnlyTablesAreRead(t *testing.T) {
	path := t.TempDir() + "/evil.sqlite"
	execute(t, path, `CREATE TABLE writes (x)`,
		`CREATE VIEW checkpoints AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
			SELECT i AS thread_id, '' AS checkpoint_ns, i AS checkpoint_id, NULL AS parent_checkpoint_id, 'json' AS type, '{}' AS checkpoint, '{}' AS metadata FROM n`)
	s := storetest.New(t)
	r, err := importer.Import(bg, s, archive.Path(path), importer.Options{Formats: allFormats(), Format: "langgraph"})
	require.NoError(t, err)
	require.Len(t, r.Skipped, 1)
	require.ErrorIs(t, r.Skipped[0], archive.ErrMalformed)
}

func TestNoDatabase(t *testing.T) {
	for _, format := range []string{"langgraph", "llm"} {
		for _, text := range []string{"", "SQLite format 3\x00", "not at all a database", "SQLite format 3\x00" + strings.Repeat("\xff", 5000)} {
			path := t.TempDir() + "/x"
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			r, err := importer.Import(bg, storetest.New(t), archive.Path(path), importer.Options{Formats: allFormats(), Format: format})
			if err != nil {
				require.ErrorIs(t, err, archive.ErrNothingFound)
				continue
			}
			require.Len(t, r.Skipped, 1, "%q", text)
		}
	}
}

// The log next to a file is read too.
func TestWriteAheadLog(t *testing.T) {
	path := t.TempDir() + "/wal.sqlite"
	execute(t, path, `PRAGMA journal_mode = WAL`, graphSchema)
	addCheckpoints(t, path, weather()...)
	s := storetest.New(t)
	require.EqualValues(t, 2, imported(t, s, path).Conversations)
}

// A compressed file or standard input is read too.
func TestStream(t *testing.T) {
	b, err := os.ReadFile(graphFile(t, weather()...))
	require.NoError(t, err)
	s := storetest.New(t)
	r, err := importer.Import(bg, s, archive.Stream("", strings.NewReader(string(b))), importer.Options{Formats: allFormats()})
	require.NoError(t, err)
	require.EqualValues(t, 2, r.Conversations)
}

func TestLangGraphInvalidText(t *testing.T) {
	path := graphFile(t, checkpoint{thread: "t\xff\x00", namespace: "n\xfe", id: "c\xff1", messages: []any{message("HumanMessage", "\xff", "a\xffb", pair{"x\xff", "\xff"})}})
	s := storetest.New(t)
	r := imported(t, s, path)
	require.Empty(t, r.Skipped)
	require.EqualValues(t, 1, r.Messages)
	importedAgain(t, s, path)
}

// Messages with equal content but different ids or metadata stay distinct.
func TestLangGraphEqualTexts(t *testing.T) {
	path := graphFile(t,
		checkpoint{thread: "t", id: "c1", messages: []any{ask}},
		checkpoint{thread: "t", id: "c2", parent: "c1", messages: []any{ask, message("AIMessage", "x", "Cold.", pair{"response_metadata", object{{"n", 1}}})}},
		checkpoint{thread: "t", id: "c3", parent: "c1", messages: []any{ask, message("AIMessage", "y", "Cold.", pair{"response_metadata", object{{"n", 2}}})}},
	)
	s := storetest.New(t)
	require.EqualValues(t, 3, imported(t, s, path).NewMessages)
	thread, err := s.FindThread(bg, "t")
	require.NoError(t, err)
	for id, metadata := range map[string]string{"x": `{"response_metadata":{"n":1}}`, "y": `{"response_metadata":{"n":2}}`} {
		e, err := thread.Find(bg, id)
		require.NoError(t, err)
		require.JSONEq(t, metadata, string(e.Metadata))
	}
	importedAgain(t, s, path)
}
