package archives_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/storetest"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	messages "github.com/lineage-store/lineage/lineage/message"
	"github.com/lineage-store/lineage/lineage/usage"
	"github.com/lineage-store/lineage/sqladapter/archives"
)

const cursorRows = `CREATE TABLE ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);
CREATE TABLE cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);
INSERT INTO ItemTable VALUES ('cursorAuth/accessToken', 'SECRET');
INSERT INTO cursorDiskKV VALUES
	('agentKv:blob:1', 'SECRET'), ('composerData', 'SECRET'), ('composerDatb:c1', '{"composerId":"SECRET"}'), ('bubbleId:c1', '{"bubbleId":"SECRET"}'), ('bubbleId:c10:b1', '{"bubbleId":"b1","type":1,"text":"another"}'),
	('composerData:c1', '{"_v":10,"blobEncryptionKey":"SECRET","composerId":"c1","speculativeSummarizationEncryptionKey":"SECRET","other_encryptionKey":{"k":["SECRET"]},"context":{"files":[{"path":"a"},{"encryption_key":"SECRET","more":{"Encryption-Keys":["SECRET"],"\u0065ncryptionKeyBase64":"SECRET"}}]},"name":"Greet","createdAt":1767225600000,"lastUpdatedAt":1767225605000,"unifiedMode":"agent","modelConfig":{"modelName":"default"},"fullConversationHeadersOnly":[{"bubbleId":"b1","type":1},{"bubbleId":"b2","type":2},{"bubbleId":"b3","type":2},{"bubbleId":"gone","type":2},{"bubbleId":"b1","type":1}]}'),
	('bubbleId:c1:b1', CAST('{"_v":3,"type":1,"bubbleId":"b1","text":"Say hello","createdAt":"2026-01-01T00:00:00.000Z","workspaceUris":["file:///home/ada/my%20app"]}' AS BLOB)),
	('bubbleId:c1:b2', '{"_v":3,"type":2,"bubbleId":"b2","text":"","thinking":{"text":"Easy","signature":"x","encryptionKey":"SECRET"},"blobEncryptionKey":"SECRET","createdAt":"2026-01-01T00:00:01.000Z","modelInfo":{"modelName":"m-1"},"tokenCount":{"inputTokens":100,"outputTokens":7}}'),
	('bubbleId:c1:b3', '{"_v":3,"type":2,"bubbleId":"b3","text":"Done","tokenCount":{"inputTokens":0,"outputTokens":0},"toolFormerData":{"tool":15,"toolCallId":"t1","name":"run_terminal_cmd","rawArgs":"{\"command\":\"echo hello\"}","status":"completed","result":"{\"output\":\"hello\"}"}}'),
	('composerData:c2', '{"composerId":"c2","conversation":[{"bubbleId":"b1","type":1,"text":"Old"}]}'), ('composerData:c3', '{"composerId":"c3","fullConversationHeadersOnly":[]}'), ('composerData:c4', NULL);`

// Reading a database that is closed creates no file beside it, whether its program writes it with a log or without.
func TestCursorHasNoCompanions(t *testing.T) {
	for _, mode := range []string{"DELETE", "WAL"} {
		dir := t.TempDir()
		execute(t, dir+"/state.vscdb", `PRAGMA journal_mode = `+mode, cursorRows)
		r := imported(t, storetest.New(t), dir+"/state.vscdb")
		require.EqualValues(t, 2, r.Conversations)
		files, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, files, 1, mode)
	}
}

// Only rows with the two prefixes of keys are read, where the file is: nothing else of it, and no copy of it.
func TestCursor(t *testing.T) {
	path := t.TempDir() + "/state.vscdb"
	execute(t, path, cursorRows)
	s := storetest.New(t)
	r := imported(t, s, path)
	require.Equal(t, []string{"cursor"}, r.Formats)
	require.EqualValues(t, 2, r.Conversations)
	require.Empty(t, r.Skipped)
	thread, err := s.FindThread(bg, "c1")
	require.NoError(t, err)
	info, err := thread.Info(bg)
	require.NoError(t, err)
	require.Equal(t, "Greet", info.Title)
	require.JSONEq(t, `{"agent":"cursor","model":"m-1","cwd":"/home/ada/my app","mode":"agent"}`, withoutArchive(t, info.Metadata))
	require.Equal(t, []string{"user text Say hello", "assistant reasoning Easy", "assistant text Done", `assistant call run_terminal_cmd {"command":"echo hello"}`, `assistant result {"output":"hello"}`}, parts(t, thread))
	old, err := s.FindThread(bg, "c2")
	require.NoError(t, err)
	require.Equal(t, []string{"user text Old"}, parts(t, old))
	x, err := usage.Open(bg, s, t.TempDir(), usage.Options{})
	require.NoError(t, err)
	defer x.Close()
	require.NoError(t, x.Update(bg))
	report, err := x.Report(bg, usage.Query{})
	require.NoError(t, err)
	require.Equal(t, []int64{1, 100, 7}, []int64{report.Total.Requests, report.Total.Tokens[messages.Input].N, report.Total.Tokens[messages.Output].N})

	active, err := thread.Active(bg)
	require.NoError(t, err)
	for e, err := range active.Entries(bg, lineage.Window{}) {
		require.NoError(t, err)
		body, err := s.Original(bg, e)
		require.NoError(t, err)
		require.NotContains(t, string(body)+string(e.Metadata), "SECRET")
	}
	var rows []string
	for c, err := range archive.Read(bg, archive.Path(path), archive.ReadOptions{Formats: archives.Formats(), Rows: true}) {
		require.NoError(t, err)
		for _, row := range c.Rows {
			require.NotContains(t, string(row.JSON), "SECRET")
			require.NotContains(t, strings.ToLower(string(row.JSON)), "encryptionkey")
			rows = append(rows, row.Key)
		}
	}
	require.Equal(t, []string{"cursorDiskKV composerData:c1", "cursorDiskKV bubbleId:c1:b1", "cursorDiskKV bubbleId:c1:b2", "cursorDiskKV bubbleId:c1:b3", "cursorDiskKV composerData:c2"}, rows)

	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	for _, err := range archive.Read(bg, archive.Stream("state.vscdb", f), archive.ReadOptions{Formats: archives.Formats()}) {
		require.ErrorIs(t, err, archive.ErrRefused)
	}
}
