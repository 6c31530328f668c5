package archives_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/sqladapter/archives"
)

// Any file is read or refused, and the result is valid.
func FuzzFiles(f *testing.F) {
	dir := f.TempDir()
	small := "PRAGMA page_size = 512;"
	execute(f, dir+"/graph", small+graphSchema)
	addCheckpoints(f, dir+"/graph", weather()[:2]...)
	execute(f, dir+"/llm", small+llmSchema, llmRows)
	execute(f, dir+"/tree", small+llmTree)
	execute(f, dir+"/opencode", small+openCodeSchema, `INSERT INTO session (id) VALUES ('s'); INSERT INTO message VALUES ('m', 's', 1, 1, '{"role":"user"}'); INSERT INTO part VALUES ('p', 'm', 's', 1, 1, '{"type":"text","text":"x"}')`)
	execute(f, dir+"/goose", small+gooseSchema, gooseRows)
	execute(f, dir+"/crush", small+crushSchema, crushRows)
	execute(f, dir+"/cursor", small+cursorRows)
	for _, name := range []string{"graph", "llm", "tree", "opencode", "goose", "crush", "cursor"} {
		b, err := os.ReadFile(dir + "/" + name)
		require.NoError(f, err)
		f.Add(b)
	}
	f.Add([]byte(`{"table":"session","key":"s","row":{"id":"s","n":{"$blob":"AA=="},"r":{"$real":"+Inf"}}}
{"table":"message","key":"m","row":{"id":"m","session_id":"s","time_created":1,"data":{"role":"user"}}}
{"table":"part","key":"p","row":{"id":"p","message_id":"m","data":{"$json":{"type":"text","text":"x"}}}}
`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<20 {
			return
		}
		for _, format := range archives.Formats() {
			format.Detect(archive.Head{Bytes: b[:min(len(b), archive.HeadSize)]})
			readValid(t, format, b)
		}
	})
}

// Any value of a column in which a program keeps JSON is read or refused, and the result is valid.
func FuzzValues(f *testing.F) {
	dir := f.TempDir()
	columns := []struct{ format, table, column string }{
		{"opencode", "message", "data"}, {"opencode", "part", "data"}, {"goose", "messages", "content_json"}, {"goose", "messages", "metadata_json"},
		{"goose", "sessions", "model_config_json"}, {"crush", "messages", "parts"}, {"crush", "sessions", "todos"}, {"cursor", "cursorDiskKV", "value"},
	}
	small := "PRAGMA page_size = 512;"
	execute(f, dir+"/opencode", small+openCodeSchema, `INSERT INTO session (id) VALUES ('s'); INSERT INTO message VALUES ('m', 's', 1, 1, '{"role":"user"}'); INSERT INTO part VALUES ('p', 'm', 's', 1, 1, '{"type":"text","text":"x"}')`)
	execute(f, dir+"/goose", small+gooseSchema, gooseRows)
	execute(f, dir+"/crush", small+crushSchema, crushRows)
	execute(f, dir+"/cursor", small+cursorRows)
	for _, seed := range []string{
		`{"role":"assistant","providerID":"p","modelID":"m","tokens":{"input":1,"cache":{"read":-1}},"time":{"created":1e99},"path":{"cwd":1}}`,
		`{"type":"tool","callID":"c","tool":"bash","state":{"status":"completed","input":{"command":"ls"},"output":[],"metadata":{"sessionID":"s"}}}`,
		`[{"type":"toolRequest","id":"c1","toolCall":{"status":"success","value":{"name":3}}},{"type":"toolResponse","id":"c1","toolResult":{"value":{"content":[{"type":"image","data":"!"}]}}},{}]`,
		`[{"type":"tool_call","data":{"id":"c1","name":"agent","input":"{"}},{"type":"binary","data":{"Data":"!","MIMEType":"image/png"}},{"type":"finish","data":{"time":-1}},3]`,
		`{"composerId":"c1","conversation":[{"bubbleId":"b1","type":1,"text":"x"},{"bubbleId":"b1","type":2}],"fullConversationHeadersOnly":[{"bubbleId":"b9"},{"bubbleId":"b2"},7],"a":{"bEncryptionKey":"SECRET"}}`,
		`{"_v":3,"type":2,"bubbleId":"b2","thinking":3,"toolFormerData":{"rawArgs":"{","result":"\u0000","status":{}},"tokenCount":[],"createdAt":"9"}`,
	} {
		for which := range columns {
			f.Add(uint8(which), []byte(seed))
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, b []byte) {
		c := columns[int(which)%len(columns)]
		path := t.TempDir() + "/db"
		template, err := os.ReadFile(dir + "/" + c.format)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, template, 0o600))
		execute(t, path, fmt.Sprintf("UPDATE %s SET %s = CAST(x'%x' AS TEXT)", c.table, c.column, b))
		db, err := os.ReadFile(path)
		require.NoError(t, err)
		at := slices.IndexFunc(archives.Formats(), func(other archive.Format) bool { return other.Name == c.format })
		readValid(t, archives.Formats()[at], db)
	})
}

// readValid reads a database, and requires that errors are damage, and that what is read is valid.
func readValid(t *testing.T, format archive.Format, b []byte) {
	for c, err := range format.Read(bg, archive.NewInput("in", bytes.NewReader(b))) {
		valid(t, c, err)
	}
}

// valid requires that an error is damage, and that what was read is valid.
func valid(t *testing.T, c *archive.Conversation, err error) {
	var d *archive.Damage
	if err != nil {
		require.ErrorAs(t, err, &d)
		return
	}
	require.True(t, utf8.ValidString(c.SourceID) && utf8.ValidString(c.Title))
	require.True(t, c.Metadata == nil || json.Valid(c.Metadata), "%q", c.Metadata)
	for _, row := range c.Rows {
		require.True(t, json.Valid(row.JSON) && utf8.Valid(row.JSON), "%q", row.JSON)
	}
	for _, n := range c.Nodes {
		require.True(t, utf8.ValidString(n.ID) && utf8.ValidString(n.Role) && utf8.ValidString(n.Name))
		require.True(t, n.Metadata == nil || json.Valid(n.Metadata), "%q", n.Metadata)
		require.True(t, n.Type != "application/json" || json.Valid(n.Body), "%q", n.Body)
	}
}
