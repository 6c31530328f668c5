package archives_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/storetest"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
	"github.com/lineage-store/lineage/sqladapter/archives"
)

// limitedTo imports a file within limits. It returns the report and the bytes allocated meanwhile.
func limitedTo(t *testing.T, path string, l archive.Limits) (importer.Report, uint64) {
	t.Helper()
	s := storetest.New(t)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r, err := importer.Import(bg, s, archive.Path(path), importer.Options{Formats: allFormats(), Limits: l})
	runtime.ReadMemStats(&after)
	if err != nil {
		require.ErrorIs(t, err, archive.ErrNothingFound)
	}
	return r, after.TotalAlloc - before.TotalAlloc
}

// requireLimit requires that an error names a limit.
func requireLimit(t *testing.T, err error, limit string) {
	t.Helper()
	var over *archive.LimitError
	require.ErrorAs(t, err, &over)
	require.Equal(t, limit, over.Limit, "%v", err)
}

// times returns SQL for a table of the numbers from 1 to n.
func times(n int) string {
	return fmt.Sprintf(`(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) SELECT i FROM n)`, n)
}

const blobSchema = graphSchema + `CREATE TABLE checkpoint_blobs (thread_id TEXT, checkpoint_ns TEXT, channel TEXT, version TEXT, type TEXT, blob BLOB);`

// largeItems are databases with one item of far more than 1 MiB beside a small one, by what is large
// in it.
var largeItems = map[string][]string{
	"one fragment in a prompt many times": {llmSchema, llmRows,
		`INSERT INTO fragments VALUES (9, 'h9', hex(zeroblob(500000)), '', '')`,
		`INSERT INTO prompt_fragments SELECT '04r', 9, i FROM ` + times(16)},
	"a small fragment in a system prompt many times": {llmSchema, llmRows,
		`INSERT INTO fragments VALUES (9, 'h9', replace(hex(zeroblob(30000)), '0', 'y'), '', '')`,
		`INSERT INTO system_fragments SELECT '04r', 9, i FROM ` + times(270)},
	"many fragments in a prompt": {llmSchema, llmRows,
		`INSERT INTO fragments SELECT 100 + i, i, i || replace(hex(zeroblob(130000)), '0', 'y'), '', '' FROM ` + times(60),
		`INSERT INTO prompt_fragments SELECT '04r', 100 + i, i FROM ` + times(60)},
	"a response": {llmSchema, llmRows,
		`UPDATE responses SET response = hex(zeroblob(8000000)) WHERE id = '04r'`},
	"text that begins with a zero": {llmSchema, llmRows,
		`UPDATE responses SET response = CAST(zeroblob(16000000) AS TEXT) WHERE id = '04r'`},
	"columns of a response": {llmSchema, llmRows,
		`UPDATE responses SET prompt = hex(zeroblob(400000)), system = hex(zeroblob(400000)), response = hex(zeroblob(400000)), prompt_json = hex(zeroblob(400000)), response_json = hex(zeroblob(400000)),
			options_json = hex(zeroblob(400000)), token_details = hex(zeroblob(400000)), schema_id = hex(zeroblob(400000)), resolved_model = hex(zeroblob(400000)) WHERE id = '04r'`},
	"a file of many prompts": {llmSchema, llmRows,
		`INSERT INTO attachments VALUES ('at9', 'image/png', 'x.png', NULL, zeroblob(900000))`,
		`INSERT INTO prompt_attachments SELECT '04r', 'at9', i FROM ` + times(18)},
	"results of tools": {llmSchema, llmRows,
		`INSERT INTO tool_results SELECT 100 + i, '04r', NULL, 'x', hex(zeroblob(80000)), NULL, NULL, NULL FROM ` + times(100)},
	"calls of tools": {llmSchema, llmRows,
		`INSERT INTO tool_calls SELECT 100 + i, '04r', NULL, 'x', hex(zeroblob(80000)), NULL FROM ` + times(100)},
	"a fragment in one part many times": {llmSchema, llmTree,
		`INSERT INTO fragments VALUES (9, 'h9', replace(hex(zeroblob(500000)), '0', 'y'), '', '')`,
		`UPDATE parts SET text = NULL, payload = (SELECT json_object('text_ref', json_group_array(json_object('fragment', 9))) FROM ` + times(16) + `) WHERE id = 8`},
	"parts of a message": {llmSchema, llmTree,
		`INSERT INTO parts SELECT 100 + i, 'c', i, 'text', NULL, hex(zeroblob(80000)), NULL FROM ` + times(100)},
	"metadata of a message": {llmSchema, llmTree,
		`UPDATE messages SET provider_metadata = hex(zeroblob(8000000)) WHERE hash = 'c'`},
	"the answer of a turn": {llmSchema, llmTree, `ALTER TABLE turns ADD COLUMN response_json TEXT`,
		`INSERT INTO turns (id, thread_id, tip_message_hash, response_json) VALUES ('03r', 'fork', 'c', hex(zeroblob(8000000)))`},
	"a checkpoint": {graphSchema, graphRows,
		`UPDATE checkpoints SET checkpoint = '{"x":"' || hex(zeroblob(8000000)) || '"}' WHERE thread_id = 'large'`},
	"metadata of a checkpoint": {graphSchema, graphRows,
		`UPDATE checkpoints SET metadata = '{"x":"' || hex(zeroblob(8000000)) || '"}' WHERE thread_id = 'large'`},
	"a write": {graphSchema, graphRows,
		`INSERT INTO writes VALUES ('large', '', 'c1', 't', 0, 'x', 'json', '"' || hex(zeroblob(8000000)) || '"')`},
	"many writes": {graphSchema, graphRows,
		`INSERT INTO writes SELECT 'large', '', 'c1', 't', i, 'x', 'json', '"' || hex(zeroblob(80000)) || '"' FROM ` + times(100)},
	"a channel": {blobSchema, graphRows,
		`UPDATE checkpoints SET checkpoint = '{"channel_versions":{"x":"1"}}' WHERE thread_id = 'large'`,
		`INSERT INTO checkpoint_blobs VALUES ('large', '', 'x', '1', 'bytes', zeroblob(16000000))`},
	"many channels": {blobSchema, graphRows,
		`UPDATE checkpoints SET checkpoint = (SELECT json_object('channel_versions', json_group_object('x' || i, '1')) FROM ` + times(100) + `) WHERE thread_id = 'large'`,
		`INSERT INTO checkpoint_blobs SELECT 'large', '', 'x' || i, '1', 'bytes', zeroblob(160000) FROM ` + times(100)},
}

const graphRows = `INSERT INTO checkpoints VALUES
	('large', '', 'c1', NULL, 'json', '{}', NULL),
	('small', '', 'c1', NULL, 'json', '{"channel_values":{"messages":[{"type":"human","content":"Hello."}]}}', NULL);`

// An item that exceeds the limit is reported and left out before it takes memory; the others are
// read.
func TestLimitOfItems(t *testing.T) {
	for name, statements := range largeItems {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir() + "/x.db"
			execute(t, path, statements...)
			r, allocated := limitedTo(t, path, archive.Limits{Item: 1 << 20})
			require.EqualValues(t, 1, r.SkippedCount, "%v", r.Skipped)
			requireLimit(t, r.Skipped[0], "item")
			require.Regexp(t, "large|04r|fork", r.Skipped[0].Error(), "the item is named")
			require.NotZero(t, r.Messages, "the others are read")
			require.Less(t, allocated, uint64(20<<20))

			r, _ = limitedTo(t, path, archive.Limits{Item: 400 << 20, Ratio: 1e6})
			require.Empty(t, r.Skipped, "it is the limit that keeps it out")
		})
	}
}

// A database from which much more would be read than it holds is left after a while.
func TestLimitOfExpansion(t *testing.T) {
	for name, statements := range map[string][]string{
		"fragments": {llmSchema, `INSERT INTO fragments VALUES (1, 'h', replace(hex(zeroblob(500000)), '0', 'y'), '', '')`,
			`INSERT INTO responses (id, prompt, response) SELECT 'r' || i, i, 'Yes.' FROM ` + times(100), `INSERT INTO prompt_fragments SELECT 'r' || i, 1, 0 FROM ` + times(100)},
		"small fragments": {llmSchema, `INSERT INTO fragments VALUES (1, 'h', replace(hex(zeroblob(30000)), '0', 'y'), '', '')`,
			`INSERT INTO responses (id, prompt, response) SELECT 'r' || i, i, 'Yes.' FROM ` + times(300), `INSERT INTO prompt_fragments SELECT 'r' || i, 1, 0 FROM ` + times(300)},
		"messages of many threads": {llmSchema, llmTree, `UPDATE parts SET text = replace(hex(zeroblob(500000)), '0', 'y') WHERE id = 1`,
			`INSERT INTO threads SELECT 't' || i, '', 'b', NULL, '2025-02-03T04:05:06+00:00' FROM ` + times(100)},
		"one channel in many checkpoints": {blobSchema, `INSERT INTO checkpoint_blobs SELECT 't', '', 'x', '1', 'bytes', zeroblob(1000000) FROM ` + times(1),
			`INSERT INTO checkpoints SELECT 't', '', 'c' || i, NULL, 'json', '{"channel_versions":{"x":"1"},"channel_values":{"messages":[{"type":"human","content":"Hello."}]}}', NULL FROM ` + times(100)},
	} {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir() + "/x.db"
			execute(t, path, statements...)
			limits := archive.Limits{Ratio: 8, RatioFrom: 4 << 20}
			r, allocated := limitedTo(t, path, limits)
			require.EqualValues(t, 1, r.SkippedCount, "%v", r.Skipped)
			requireLimit(t, r.Skipped[0], "ratio")
			require.Less(t, allocated, uint64(320<<20))
			r, _ = limitedTo(t, path, archive.Limits{Total: 6 << 20})
			requireLimit(t, r.Skipped[0], "total")
			r, _ = limitedTo(t, path, archive.Limits{})
			require.Empty(t, r.Skipped)

			b, err := os.ReadFile(path)
			require.NoError(t, err)
			var packed bytes.Buffer
			z := gzip.NewWriter(&packed)
			_, err = z.Write(b)
			require.NoError(t, err)
			require.NoError(t, z.Close())
			require.NoError(t, os.WriteFile(path+".gz", packed.Bytes(), 0o600))
			limits.Ratio = int64(3 * len(b) / packed.Len()) // what is expanded is read from the copy
			r, _ = limitedTo(t, path+".gz", limits)
			requireLimit(t, r.Skipped[0], "ratio")
		})
	}
}

// A database without the indexes that its program has is left after a while: each lookup would read all of it. With the indexes all is read.
func TestLimitOfVisitedRows(t *testing.T) {
	const n = 3000
	numbers := times(n)
	say := openClawSays("m", "", "user", "x")
	cursor := func(what string) string {
		return `INSERT INTO cursorDiskKV SELECT 'composerData:c' || i, '{"conversation":[{"bubbleId":"b","type":1,"text":"x"}]}' FROM ` + numbers + what
	}
	for name, c := range map[string]struct {
		file    string
		tables  []string
		indexes []string
	}{
		"openclaw": {"openclaw-agent.sqlite", []string{`CREATE TABLE transcript_events (session_id TEXT, seq INTEGER, event_json TEXT, created_at INTEGER); CREATE TABLE session_windows (session_id TEXT, session_key TEXT); CREATE TABLE session_nodes (session_key TEXT)`,
			`INSERT INTO transcript_events SELECT 's' || i, 0, '` + say + `', 1 FROM ` + numbers, `INSERT INTO session_windows SELECT 's' || i, 'k' || i FROM ` + numbers, `INSERT INTO session_nodes SELECT 'k' || i FROM ` + numbers},
			[]string{`CREATE INDEX a ON transcript_events (session_id)`, `CREATE INDEX b ON session_windows (session_id)`, `CREATE INDEX c ON session_nodes (session_key)`}},
		"opencode": {"opencode.db", []string{`CREATE TABLE session (id TEXT, parent_id TEXT); CREATE TABLE message (id TEXT, session_id TEXT, data TEXT); CREATE TABLE part (id TEXT, message_id TEXT, data TEXT)`,
			`INSERT INTO session SELECT 's' || i, NULL FROM ` + numbers, `INSERT INTO message SELECT 'm' || i, 's' || i, '{"role":"user"}' FROM ` + numbers, `INSERT INTO part SELECT 'p' || i, 'm' || i, '{"type":"text","text":"x"}' FROM ` + numbers},
			[]string{`CREATE INDEX a ON session (parent_id)`, `CREATE INDEX b ON message (session_id)`, `CREATE INDEX c ON part (message_id)`}},
		"goose": {"sessions.db", []string{`CREATE TABLE sessions (id TEXT, working_dir TEXT, parent_session_id TEXT); CREATE TABLE messages (id INTEGER, session_id TEXT, role TEXT, content_json TEXT, created_timestamp INTEGER); CREATE TABLE usage_ledger (id INTEGER, session_id TEXT)`,
			`INSERT INTO sessions SELECT 's' || i, '/w', NULL FROM ` + numbers, `INSERT INTO messages SELECT i, 's' || i, 'user', '[{"type":"text","text":"x"}]', 1 FROM ` + numbers, `INSERT INTO usage_ledger SELECT i, 's' || i FROM ` + numbers},
			[]string{`CREATE INDEX a ON sessions (parent_session_id)`, `CREATE INDEX b ON messages (session_id)`, `CREATE INDEX c ON usage_ledger (session_id)`}},
		"crush": {"crush.db", []string{`CREATE TABLE sessions (id TEXT, parent_session_id TEXT); CREATE TABLE messages (id TEXT, session_id TEXT, role TEXT, parts TEXT, created_at INTEGER)`,
			`INSERT INTO sessions SELECT 's' || i, NULL FROM ` + numbers, `INSERT INTO messages SELECT 'm' || i, 's' || i, 'user', '[]', 1 FROM ` + numbers},
			[]string{`CREATE INDEX a ON sessions (parent_session_id)`, `CREATE INDEX b ON messages (session_id)`}},
		"cursor": {"state.vscdb", []string{`CREATE TABLE cursorDiskKV (key TEXT, value BLOB)`, cursor("")}, []string{`CREATE INDEX a ON cursorDiskKV (key)`}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), c.file)
			execute(t, path, c.tables...)
			info, err := os.Stat(path)
			require.NoError(t, err)
			// A lookup visits n rows, of which each counts 4 bytes. The limit is the size of the file.
			limits := archive.Limits{Ratio: 1, RatioFrom: 1}
			read := func() (conversations int, err error) {
				seen := make(map[string]bool)
				for c, failed := range archive.Read(bg, archive.Path(path), archive.ReadOptions{Formats: archives.Formats(), Format: name, Limits: limits}) {
					if failed != nil {
						err = failed
						continue
					}
					seen[c.SourceID] = true
				}
				return len(seen), err
			}
			got, err := read()
			requireLimit(t, err, "ratio")
			require.Less(t, int64(got)*n*4, 2*info.Size())
			limits = archive.Limits{Ratio: 4, RatioFrom: 1 << 20}
			_, err = read()
			requireLimit(t, err, "ratio")
			execute(t, path, c.indexes...)
			got, err = read()
			require.NoError(t, err)
			require.Equal(t, n, got)
		})
	}

	// Equal keys of Cursor are one conversation.
	path := filepath.Join(t.TempDir(), "state.vscdb")
	execute(t, path, `CREATE TABLE cursorDiskKV (key TEXT, value BLOB); CREATE INDEX a ON cursorDiskKV (key)`, strings.Replace(cursor(""), "|| i", "|| (i % 2)", 1))
	n1 := 0
	for _, err := range archive.Read(bg, archive.Path(path), archive.ReadOptions{Formats: archives.Formats()}) {
		require.NoError(t, err)
		n1++
	}
	require.Equal(t, 2, n1)
}

func TestLimitOfObjects(t *testing.T) {
	many := `'[' || (SELECT group_concat('{}') FROM ` + times(2000) + `) || ']'`
	for name, statements := range map[string][]string{
		"JSON of a response": {llmSchema, llmRows, `UPDATE responses SET response_json = ` + many + ` WHERE id = '04r'`},
		"payload":            {llmSchema, llmTree, `UPDATE parts SET payload = '{"x":' || ` + many + ` || '}' WHERE id = 8`},
		"checkpoint":         {graphSchema, graphRows, `UPDATE checkpoints SET checkpoint = '{"x":' || ` + many + ` || '}' WHERE thread_id = 'large'`},
		"packed checkpoint":  {graphSchema, graphRows, `UPDATE checkpoints SET type = 'msgpack', checkpoint = CAST(x'81a178dc07d0' || zeroblob(0) AS BLOB) || CAST(replace(hex(zeroblob(1000)), '0', x'80') AS BLOB) WHERE thread_id = 'large'`},
		"writes":             {graphSchema, graphRows, `INSERT INTO writes SELECT 'large', '', 'c1', 't', i, 'x', 'json', '[{},{},{},{}]' FROM ` + times(500)},
		"metadata":           {graphSchema, graphRows, `UPDATE checkpoints SET metadata = '{"x":' || ` + many + ` || '}' WHERE thread_id = 'large'`},
	} {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir() + "/x.db"
			execute(t, path, statements...)
			r, _ := limitedTo(t, path, archive.Limits{Objects: 1000})
			require.EqualValues(t, 1, r.SkippedCount, "%v", r.Skipped)
			requireLimit(t, r.Skipped[0], "objects")
			require.NotZero(t, r.Messages, "the others are read")
			r, _ = limitedTo(t, path, archive.Limits{})
			require.Empty(t, r.Skipped)
		})
	}
}

// A long conversation is yielded in parts of a few items.
func TestParts(t *testing.T) {
	for name, statements := range map[string][]string{
		"responses": {llmSchema, `INSERT INTO responses (id, prompt, response, conversation_id) SELECT 1000 + i, i, i || hex(zeroblob(500000)), 'c' FROM ` + times(40)},
		"tree": {llmSchema, `CREATE TABLE messages (hash TEXT PRIMARY KEY, parent_hash TEXT, role TEXT); CREATE TABLE parts (id INTEGER PRIMARY KEY, message_hash TEXT, position INTEGER, type TEXT, text TEXT);
			CREATE TABLE threads (id TEXT PRIMARY KEY, tip_message_hash TEXT); INSERT INTO threads VALUES ('c', 'm40')`,
			`INSERT INTO messages SELECT 'm' || i, 'm' || (i - 1), 'user' FROM ` + times(40) + `; UPDATE messages SET parent_hash = NULL WHERE hash = 'm1'`,
			`INSERT INTO parts SELECT i, 'm' || i, 0, 'text', i || hex(zeroblob(500000)) FROM ` + times(40)},
	} {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir() + "/x.db"
			execute(t, path, statements...)
			file, err := os.Open(path)
			require.NoError(t, err)
			defer file.Close()
			parts, nodes := 0, 0
			for c, err := range archives.Formats()[1].Read(bg, archive.NewInput("in", file)) {
				require.NoError(t, err)
				size := 0
				for _, n := range c.Nodes {
					size += len(n.Body)
				}
				require.Less(t, size, 8<<20)
				parts++
				nodes += len(c.Nodes)
			}
			require.Greater(t, parts, 4)
			require.GreaterOrEqual(t, nodes, 40)

			s := storetest.New(t)
			imported(t, s, path)
			require.Len(t, strings.Split(strings.TrimSpace(said(t, s, "c")["main*"]), "\n"), nodes)
		})
	}
}
