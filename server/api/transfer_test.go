package api

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/follow"
)

// A session file that cannot be read any more is not given to another user whose thread has the same source id.
func TestNativeOfAnother(t *testing.T) {
	h := open(t)
	home, id := t.TempDir(), "11111111-2222-3333-4444-555555555555"
	file := filepath.Join(home, ".claude", "projects", "-work", id+".jsonl")
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	written := "a secret that is no JSON\n" +
		`{"type":"user","uuid":"a","parentUuid":null,"sessionId":"` + id + `","cwd":"/src","timestamp":"2026-01-02T03:04:05.678Z","message":{"role":"user","content":"hello"}}` + "\n"
	require.NoError(t, os.WriteFile(file, []byte(written), 0o600))
	require.NoError(t, follow.Run(t.Context(), h.store, follow.Options{
		Once: true, Machine: follow.Machine{ID: strings.Repeat("ab", 16), Secret: "s"},
		Environment: &follow.Environment{Home: home, OS: "linux", Getenv: func(string) string { return "" }},
	}))
	path := "/v1/threads/=" + id
	require.Equal(t, written, string(h.do("GET", path+"/native", nil).Body))

	said := h.do("GET", path+"/contexts/main/messages", nil).items()
	h.do("DELETE", "/v1/content/"+said[0]["content_id"].(string), nil).is(200)
	h.do("DELETE", path, nil)
	h.do("POST", "/v1/threads", `{"id":"`+id+`"}`, "Caller: bob").is(201)
	h.do("POST", path+"/contexts/main/messages", `{"messages":[{"text":"mine"}]}`, "Caller: bob").is(201)
	got := h.do("GET", path+"/native", nil, "Caller: bob")
	require.Equal(t, 404, got.Status, string(got.Body))
	require.NotContains(t, string(got.Body), "secret")
	// Who may read the thread learns that it has no file; others, that there is no such thread.
	require.Contains(t, got.is(404)["detail"], "no session file")
	require.NotContains(t, h.do("GET", path+"/native", nil, "Caller: ada").is(404)["detail"], "no session file")
}
