package resume

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/follow"
)

// A message that the import takes is still one after it was changed for another session.
func FuzzOpenCode(f *testing.F) {
	for _, seed := range []string{
		`{"info":{"id":"msg_1","role":"user","time":{"created":1},"agent":"a","model":{"providerID":"p","modelID":"m"},"tools":{"a":true}},"parts":[{"type":"text","text":"a"},{"type":"subtask"},{"type":"file","mime":"a/b","url":"file:///a"},{"type":"compaction","auto":true,"tail_start_id":"msg_0"}]}`,
		`{"info":{"id":"msg_2","role":"assistant","time":{"created":1e3},"parentID":"msg_1","modelID":"m","providerID":"p","mode":"m","path":{"cwd":"/","root":"/"},"cost":0.1,"tokens":{"input":1,"output":1,"reasoning":0,"cache":{"read":0,"write":0}},"error":{"name":"APIError","data":{"message":"x"}}},"parts":[{"type":"tool","callID":"c","tool":"t","state":{"status":"completed","input":{},"output":"o","title":"","metadata":{},"time":{"start":1,"end":2},"attachments":[{"mime":"a/b","url":"data:,x","source":{}},{"mime":"a/b","url":"http://x"}]}},{"type":"patch"}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !rawjson.Valid(raw) || !rawjson.IsObject(raw) || !openCodeStored(raw) {
			return
		}
		s := &Session{ID: openCode().newID(), now: time.Now(), environment: &follow.Environment{Home: t.TempDir(), OS: "linux", Getenv: func(string) string { return "" }}}
		edited := openCodeEditor(s)(raw)
		require.True(t, rawjson.Valid(edited), "%s", edited)
		require.True(t, openCodeStored(edited), "%s", edited)
	})
}
