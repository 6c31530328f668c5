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
