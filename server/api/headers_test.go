package api

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/lineagetest"
	"github.com/lineage-store/lineage/server/access"
)

// An answer is never a document of the page's origin, errors included.
func TestAnswersAreNoDocuments(t *testing.T) {
	url, tokens := served(t, lineagetest.New(t, lineage.Options{}))
	_, secret, err := tokens.Create(t.Context(), access.Token{})
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for path, status := range map[string]int{"/v1/threads": 200, "/v1/openapi.json": 200, "/v1/threads/=none": 404, "/v1/threads?x=1": 400} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+path, nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+secret)
		a, err := client.Do(r)
		require.NoError(t, err)
		require.NoError(t, a.Body.Close())
		require.Equal(t, status, a.StatusCode, path)
		require.Equal(t, []string{"sandbox; default-src 'none'; frame-ancestors 'none'"}, a.Header.Values("Content-Security-Policy"), path)
		require.Equal(t, "nosniff", a.Header.Get("X-Content-Type-Options"), path)
		require.Equal(t, "same-origin", a.Header.Get("Cross-Origin-Resource-Policy"), path)
		require.Contains(t, []string{"no-store", "no-cache, private"}, a.Header.Get("Cache-Control"), path)
	}
}

// What a caller relies on is not ignored: a condition that the route does not check, and a body that is compressed.
func TestHeadersAreNotIgnored(t *testing.T) {
	h := open(t)
	h.do("POST", "/v1/threads", `{"id":"t"}`).is(201)
	const c = "/v1/threads/=t/contexts/main"
	for _, request := range []struct{ method, path, body string }{
		{"PATCH", "/v1/threads/=t", `{"title":"new"}`}, {"PUT", "/v1/store/values/k", `1`}, {"DELETE", "/v1/threads/=t", ``},
		{"POST", "/v1/batch", `{"operations":[{"op":"create_thread","id":"u"}]}`}, {"POST", "/v1/content", `bytes`},
		{"PATCH", c, `{"model":"m"}`},
	} {
		for _, header := range []string{`If-Match: "x"`, `If-Match: *`, `If-None-Match: *`, "If-Unmodified-Since: Mon, 30 Nov 2026 10:00:00 GMT"} {
			h.do(request.method, request.path, request.body, header).is(400)
		}
		problem := h.do(request.method, request.path, request.body, "Content-Encoding: gzip").is(415)
		require.Equal(t, "urn:lineage:problem:unsupported-encoding", problem["type"])
	}
	h.do("POST", c+"/files", `bytes`, "Content-Encoding: br").is(415)
	h.do("POST", c+"/files", `bytes`, `If-None-Match: "x"`).is(400)
	thread := h.do("GET", "/v1/threads/=t", nil).is(200)
	require.Empty(t, thread["title"])
	require.EqualValues(t, 0, thread["messages"])
	h.do("POST", c+"/files?name=a", `bytes`, `If-Match: "empty"`, "Content-Encoding: identity").is(201)
	h.do("GET", "/v1/store/values/k", nil).is(404)
	h.do("PUT", "/v1/store/values/k", `1`).is(200)
}
