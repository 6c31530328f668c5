package archives_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	messages "github.com/lineage-store/lineage/lineage/message"
	"github.com/lineage-store/lineage/lineage/usage"
)

const openCodeSchema = `
CREATE TABLE session (id text PRIMARY KEY, project_id text, parent_id text, slug text, directory text, title text, version text, agent text, model text, time_created integer, time_updated integer);
CREATE TABLE message (id text PRIMARY KEY, session_id text, time_created integer, time_updated integer, data text);
CREATE TABLE part (id text PRIMARY KEY, message_id text, session_id text, time_created integer, time_updated integer, data text);`

// A published database is read with its calls and results.
func TestOpenCode(t *testing.T) {
	s := storeIn(t)
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
	s := storeIn(t)
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
			s := storeIn(t)
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
