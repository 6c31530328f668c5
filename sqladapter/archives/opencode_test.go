package archives_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/storetest"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
	messages "github.com/lineage-store/lineage/lineage/message"
	"github.com/lineage-store/lineage/lineage/usage"
	"github.com/lineage-store/lineage/sqladapter/archives"
)

const openCodeSchema = `
CREATE TABLE session (id text PRIMARY KEY, project_id text, parent_id text, slug text, directory text, title text, version text, agent text, model text, time_created integer, time_updated integer);
CREATE TABLE message (id text PRIMARY KEY, session_id text, time_created integer, time_updated integer, data text);
CREATE TABLE part (id text PRIMARY KEY, message_id text, session_id text, time_created integer, time_updated integer, data text);`

// A published database is read with its calls and results.
func TestOpenCode(t *testing.T) {
	s := storetest.New(t)
	r := imported(t, s, "testdata/opencode/opencode.db.gz")
	require.Equal(t, []string{"opencode"}, r.Formats)
	require.Empty(t, r.Skipped)
	require.Empty(t, r.Repaired)
	require.EqualValues(t, 3, r.Conversations)
	require.EqualValues(t, 7, r.Messages)

	thread, err := s.FindThread(bg, "ses_031541bf9ffeMiy2LOFii47rch")
	require.NoError(t, err)
	info, err := thread.Info(bg)
	require.NoError(t, err)
	require.Equal(t, "Fix average_item_price returns 0 when cart has no items", info.Title)
	require.Contains(t, string(info.Metadata), `{"agent":"opencode","agentVersion":"1.18.13","model":"qwen3:0.6b","cwd":"`)
	main, err := thread.Active(bg)
	require.NoError(t, err)
	entries, err := main.All(bg)
	require.NoError(t, err)
	require.Len(t, entries, 3)
	var kinds []string
	for i := range entries {
		for _, m := range messages.Decode(entries[i].Body, entries[i].Type, entries[i].Role) {
			for _, p := range m.Parts {
				kinds = append(kinds, m.Role+" "+p.Kind.String())
			}
		}
	}
	require.Equal(t, "user text, assistant reasoning, assistant call, assistant result, assistant reasoning, assistant text", strings.Join(kinds, ", "))
	head, err := s.View().Head(bg)
	require.NoError(t, err)
	imported(t, s, "testdata/opencode/opencode.db.gz")
	now, err := s.View().Head(bg)
	require.NoError(t, err)
	require.Equal(t, head, now, "importing again made commits")
}

// What OpenCode 1.18.33 wrote is read, with the subagent below the message that started it.
func TestOpenCodeOfToday(t *testing.T) {
	s := storetest.New(t)
	r := imported(t, s, "testdata/opencode/opencode-1.18.33.db.gz")
	require.Empty(t, r.Skipped)
	require.EqualValues(t, 1, r.Conversations)
	thread, err := s.FindThread(bg, "ses_dde7fb88dffendtQFJHTsRf10H")
	require.NoError(t, err)
	info, err := thread.Info(bg)
	require.NoError(t, err)
	require.JSONEq(t, `{"agent":"opencode","agentVersion":"1.18.33","model":"demo-1","cwd":"/home/ada/work","slug":"eager-comet","mode":"build"}`, withoutArchive(t, info.Metadata))
	texts := parts(t, thread)
	require.Equal(t, []string{"user text CALLTASK", "assistant text I look.", `assistant call task {"description":"look","prompt":"Say hello","subagent_type":"general"}`}, texts[:3])
	require.Contains(t, texts, "assistant result hi\n")
	require.Equal(t, "assistant text Answer 7.", texts[len(texts)-1])
	require.Contains(t, messageIDs(t, thread), "msg_22180483b001e9VJ7pEpDMvP8H msg_221805122001MuEZdxzHM3Y0u6 msg_2218059ed001v7TVI5zrKSQenb msg_221805a41001KQR4770tdYq30p")
}

// messageIDs returns the ids of the messages that each context of a thread has.
func messageIDs(t *testing.T, thread *lineage.Thread) (all []string) {
	for c, err := range thread.Contexts(bg) {
		require.NoError(t, err)
		var ids []string
		for e, err := range c.Entries(bg, lineage.Window{}) {
			require.NoError(t, err)
			ids = append(ids, e.SourceID)
		}
		all = append(all, strings.Join(ids, " "))
	}
	return all
}

// Messages of version 2 are read where there are some, and those of version 1 elsewhere.
func TestOpenCodeVersion2(t *testing.T) {
	for _, sessions := range []string{"session", "session_v2"} {
		path := t.TempDir() + "/opencode.db"
		execute(t, path, openCodeSchema, strings.Replace(openCodeSchema[:strings.Index(openCodeSchema, "CREATE TABLE message")], "session", "session_v2", 1), `
CREATE TABLE session_message (id text PRIMARY KEY, session_id text NOT NULL, type text NOT NULL, seq integer NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
INSERT INTO session (id, title, directory) VALUES ('s1', 'Stale', '/w'), ('s0', 'Old', '/w');
INSERT INTO `+sessions+` (id, title, directory) VALUES ('s1', 'Now', '/w') ON CONFLICT DO UPDATE SET title = 'Now';
INSERT INTO message VALUES ('m1', 's1', 1767225600000, 0, '{"role":"user"}'), ('o1', 's0', 1767225600000, 0, '{"role":"user"}');
INSERT INTO part VALUES ('p1', 'm1', 's1', 0, 0, '{"type":"text","text":"stale"}'), ('p2', 'o1', 's0', 0, 0, '{"type":"text","text":"Old"}');
INSERT INTO session_message VALUES ('m2', 's1', 'assistant', 2, 1767225601000, 0, '{"agent":"build","model":{"id":"m","providerID":"p"},"content":[{"type":"reasoning","id":"r","text":"Hm"},{"type":"text","id":"t","text":"I run it."},{"type":"tool","id":"c1","name":"bash","state":{"status":"completed","input":{"command":"ls"},"content":[{"type":"text","text":"a.txt"}],"structured":{}},"time":{"created":1}},{"type":"tool","id":"c2","name":"bash","state":{"status":"error","input":{"command":"rm"},"content":[],"structured":{},"error":{"type":"unknown","message":"denied"}},"time":{"created":1}}],"cost":0.5,"tokens":{"input":10,"output":3,"reasoning":0,"cache":{"read":2,"write":0}},"time":{"created":1767225601000}}'),
	('m1', 's1', 'user', 1, 1767225600000, 0, '{"text":"List","files":[{"uri":"file:///w/a.txt","mime":"text/plain","name":"a.txt"}],"time":{"created":1767225600000}}'),
	('x1', 's1', 'model-switched', 3, 1767225601000, 0, '{"model":{"id":"m2"},"time":{"created":1767225601000}}'),
	('m3', 's1', 'compaction', 4, 1767225602000, 0, '{"reason":"auto","summary":"All done","recent":"","time":{"created":1767225602000}}');`)
		s := storetest.New(t)
		r := imported(t, s, path)
		require.Empty(t, r.Skipped)
		require.EqualValues(t, 2, r.Conversations)
		thread, err := s.FindThread(bg, "s1")
		require.NoError(t, err)
		info, err := thread.Info(bg)
		require.NoError(t, err)
		require.Equal(t, "Now", info.Title)
		require.Equal(t, []string{
			"user text List", "user file [text/plain a.txt]", "assistant reasoning Hm", "assistant text I run it.", `assistant call bash {"command":"ls"}`, "assistant result a.txt",
			`assistant call bash {"command":"rm"}`, "assistant result failed: denied", "compaction text All done",
		}, parts(t, thread))
		require.ElementsMatch(t, []string{"m1 m2 m3", "x1"}, messageIDs(t, thread))
		old, err := s.FindThread(bg, "s0")
		require.NoError(t, err)
		require.Equal(t, []string{"user text Old"}, parts(t, old))
		x, err := usage.Open(bg, s, t.TempDir(), usage.Options{})
		require.NoError(t, err)
		require.NoError(t, x.Update(bg))
		report, err := x.Report(bg, usage.Query{})
		require.NoError(t, err)
		require.NoError(t, x.Close())
		require.EqualValues(t, 1, report.Total.Requests)
		require.Equal(t, "0.5", report.Total.Stated.String())
	}
}

// The session of a subagent is a context below the message that started it, and damaged rows are
// reported.
func TestOpenCodeSubagents(t *testing.T) {
	path := t.TempDir() + "/opencode.db"
	execute(t, path, openCodeSchema, `
INSERT INTO session VALUES ('s1', 'p', NULL, 'x', '/w', 'New session - 2026-01-01', '1.0', 'build', NULL, 1767225600000, 1767225601000),
	('s2', 'p', 's1', 'y', '/w', 'Child', '1.0', 'explore', NULL, 1767225600000, 1767225601000), ('s3', 'p', 's2', 'z', '/w', 'Grandchild', '1.0', NULL, NULL, NULL, -1);
INSERT INTO message VALUES ('m1', 's1', 1767225600000, 0, '{"role":"user"}'), ('m2', 's1', 1767225600001, 0, '{"role":"assistant","modelID":"x"}'), ('m3', 's1', 1767225600002, 0, '{"role":"assistant"}'),
	('m4', 's1', 1767225600003, 0, '{broken'), ('n1', 's2', 1767225600001, 0, '{"role":"user"}'), ('o1', 's3', NULL, 0, '{"role":"user"}');
INSERT INTO part VALUES ('p1', 'm1', 's1', 0, 0, '{"type":"text","text":"Ask a helper"}'),
	('p2', 'm2', 's1', 0, 0, '{"type":"tool","tool":"task","callID":"c","state":{"status":"completed","input":{"prompt":"search"},"output":"found","metadata":{"sessionId":"s2"}}}'),
	('p3', 'm3', 's1', 0, 0, '{"type":"text","text":"Done"}'), ('q1', 'n1', 's2', 0, 0, '{"type":"text","text":"search"}'), ('r1', 'o1', 's3', 0, 0, '{"type":"text","text":"deeper"}');`)
	s := storetest.New(t)
	r := imported(t, s, path)
	require.EqualValues(t, 1, r.Conversations)
	require.Len(t, r.Skipped, 1)
	require.Contains(t, r.Skipped[0].Error(), "message m4")
	thread, err := s.FindThread(bg, "s1")
	require.NoError(t, err)
	info, err := thread.Info(bg)
	require.NoError(t, err)
	require.Empty(t, info.Title)
	texts := make(map[string]string)
	for c, err := range thread.Contexts(bg) {
		require.NoError(t, err)
		state, err := c.Info(bg)
		require.NoError(t, err)
		var said []string
		for e, err := range c.Entries(bg, lineage.Window{}) {
			require.NoError(t, err)
			said = append(said, e.SourceID)
		}
		texts[string(state.Metadata)] = strings.Join(said, " ")
	}
	require.Equal(t, map[string]string{"": "m1 m2 m3", `{"aside":"agent s2"}`: "m1 m2 n1", `{"aside":"agent s3"}`: "o1"}, texts)
}

// A session that is read while its answer is written ends with the final text and tokens, and the answer counts once: as it is in
// the end. It does not matter whether the last change was of the text or of the tokens only.
func TestOpenCodeWhileItIsWritten(t *testing.T) {
	const text = `UPDATE part SET data = '{"type":"text","text":"TEXT"}' WHERE id = 'p2'`
	const data = `UPDATE message SET data = '{"role":"assistant","modelID":"x","providerID":"p","cost":COST,"tokens":{"input":INPUT,"output":OUTPUT,"reasoning":0,"cache":{"read":0,"write":0}},"time":{"created":1767225600001TIME}}' WHERE id = 'm2'`
	for name, steps := range map[string][]string{
		"tokens last":         {"", text, strings.NewReplacer("COST", "0.5", "INPUT", "70", "OUTPUT", "9", "TIME", `,"completed":1767225609999`).Replace(data)},
		"no tokens before":    {`UPDATE message SET data = '{"role":"assistant","modelID":"x"}' WHERE id = 'm2'`, text, strings.NewReplacer("COST", "0.5", "INPUT", "70", "OUTPUT", "9", "TIME", "").Replace(data)},
		"text last":           {strings.NewReplacer("COST", "0.5", "INPUT", "70", "OUTPUT", "9", "TIME", "").Replace(data), text},
		"tokens in two steps": {text, strings.NewReplacer("COST", "0.1", "INPUT", "70", "OUTPUT", "1", "TIME", "").Replace(data), strings.NewReplacer("COST", "0.5", "INPUT", "70", "OUTPUT", "9", "TIME", "").Replace(data)},
	} {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir() + "/opencode.db"
			execute(t, path, openCodeSchema, `
INSERT INTO session VALUES ('s1', 'p', NULL, 'x', '/w', 'T', '1.0', 'build', NULL, 1767225600000, 1767225601000);
INSERT INTO message VALUES ('m1', 's1', 1767225600000, 0, '{"role":"user"}'), ('m2', 's1', 1767225600001, 0, '');
INSERT INTO part VALUES ('p1', 'm1', 's1', 0, 0, '{"type":"text","text":"Hello"}'), ('p2', 'm2', 's1', 0, 0, '{"type":"text","text":"T"}')`,
				strings.NewReplacer("COST", "0", "INPUT", "0", "OUTPUT", "0", "TIME", "").Replace(data))
			s := storetest.New(t)
			x, err := usage.Open(bg, s, t.TempDir(), usage.Options{})
			require.NoError(t, err)
			defer x.Close()
			for _, step := range steps {
				imported(t, s, path)
				require.NoError(t, x.Update(bg))
				execute(t, path, step)
			}
			execute(t, path, `INSERT INTO message VALUES ('m3', 's1', 1767225600002, 0, '{"role":"user"}'); INSERT INTO part VALUES ('p3', 'm3', 's1', 0, 0, '{"type":"text","text":"Thanks"}')`)
			for range 2 { // the second time nothing is new
				imported(t, s, path)
			}
			report, err := x.Report(bg, usage.Query{})
			require.NoError(t, err)
			require.EqualValues(t, 1, report.Total.Requests)
			require.Equal(t, []int64{70, 9}, []int64{report.Total.Tokens[messages.Input].N, report.Total.Tokens[messages.Output].N})
			require.Equal(t, "0.5", report.Total.Stated.String())
			thread, err := s.FindThread(bg, "s1")
			require.NoError(t, err)
			active, err := thread.Active(bg)
			require.NoError(t, err)
			entries, err := active.All(bg)
			require.NoError(t, err)
			require.Len(t, entries, 3)
			require.Contains(t, string(entries[1].Body), `"text":"TEXT"`)
			require.Contains(t, string(entries[1].Body), `"input":70`)
			require.True(t, slices.ContainsFunc(entries, func(e *lineage.Entry) bool { return e.SourceID == "m3" }))
		})
	}
}

// The rows that are kept of a session can be read in place of the database, with earlier states of rows among them: they have the
// same conversation.
func TestOpenCodeRows(t *testing.T) {
	made := filepath.Join(t.TempDir(), "opencode.db")
	execute(t, made, openCodeSchema, `INSERT INTO session (id, title) VALUES ('s', '{"$blob":1}');
		INSERT INTO message VALUES ('m', 's', 1, 1.5, '{"role":"user"}'), ('n', 's', 9223372036854775807, 9e999, CAST('{"role":"assistant","time":{"completed":1}}' AS BLOB));
		INSERT INTO part VALUES ('p', 'm', 's', 1, 1, '{"type":"text","text":"x"}'), ('q', 'n', 's', 1, 1, '{"type":"text",`+"\n"+`"text":"two lines"}')`)
	for _, path := range []string{made, "testdata/opencode/opencode-1.18.33.db.gz"} {
		read := func(source archive.Source, o archive.ReadOptions) (all []*archive.Conversation) {
			o.Format, o.Formats = "opencode", archives.Formats()
			for c, err := range archive.Read(bg, source, o) {
				require.NoError(t, err)
				all = append(all, c)
			}
			return all
		}
		withRows := read(archive.Path(path), archive.ReadOptions{Rows: true})
		require.NotEmpty(t, withRows)
		for _, c := range withRows {
			rows := []byte(fmt.Sprintf(`{"table":"part","key":%[1]q,"row":{"id":%[1]q,"data":{"type":"text","text":"earlier"}}}`+"\n", strings.Fields(c.Rows[len(c.Rows)-1].Key)[1]))
			for _, row := range c.Rows {
				rows = append(append(rows, row.JSON...), '\n')
			}
			again := read(archive.Stream("rows", bytes.NewReader(rows)), archive.ReadOptions{})
			require.Len(t, again, 1)
			c.Rows = nil
			require.Equal(t, withoutPlaces(c), withoutPlaces(again[0]))
		}
	}
	report, err := importer.Import(bg, storetest.New(t), archive.Stream("rows", strings.NewReader("{\"table\":1}\n")), importer.Options{Format: "opencode", Formats: archives.Formats()})
	require.NoError(t, err)
	require.Len(t, report.Skipped, 1)
	require.ErrorIs(t, report.Skipped[0], archive.ErrMalformed)
}

// withoutPlaces returns a conversation without the places of its nodes in the input.
func withoutPlaces(c *archive.Conversation) archive.Conversation {
	plain := *c
	plain.Nodes = slices.Clone(c.Nodes)
	for i := range plain.Nodes {
		plain.Nodes[i].At = archive.Position{}
	}
	return plain
}
