package server

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/server/access"
	"github.com/lineage-store/lineage/server/problem"
)

// A request that no route is for is answered like other errors, before and after a token is known.
func TestUnrouted(t *testing.T) {
	h := open(t)
	for _, who := range [][]string{nil, {h.token(access.Token{Writes: true})}} {
		for _, one := range []struct {
			method, path, title, allow string
			status                     int
		}{
			{"GET", "/v1/nothing", "not found", "", 404},
			{"POST", "/nothing/at/all", "not found", "", 404},
			{"PUT", "/v1/events", "method not allowed", "GET, HEAD", 405},
			{"DELETE", "/login", "method not allowed", "GET, HEAD, POST", 405},
		} {
			got := h.do(one.method, one.path, "", who...)
			require.Equal(t, one.status, got.status, one.path)
			require.Equal(t, "application/problem+json", got.header.Get("Content-Type"))
			require.Equal(t, one.allow, got.header.Get("Allow"))
			var p problem.Problem
			require.NoError(t, json.Unmarshal([]byte(got.body), &p))
			require.Equal(t, one.title, p.Title)
		}
	}
}

// A path that the mux would redirect leads nowhere: the deletion of a branch with the name .. must not delete its
// thread. Nothing of a query is left out silently.
func TestPathsAndQueriesAreExact(t *testing.T) {
	h := open(t)
	token := h.token(access.Token{Writes: true})
	for _, path := range []string{"/v1/threads/=trip/branches/..", "/v1/threads/=trip/values/.", "/v1//events", "/v1/threads/=trip/branches//", "//"} {
		got := h.do("DELETE", path, "", token)
		require.Equal(t, 404, got.status, path)
		require.Empty(t, got.header.Get("Location"))
		require.Equal(t, "application/problem+json", got.header.Get("Content-Type"))
	}
	for _, query := range []string{"from=0&thread=%zz", "from=0;thread=x", "%"} {
		got := h.do("GET", "/v1/events?"+query, "", token)
		require.Equal(t, 400, got.status, query)
		require.Contains(t, got.body, "query: ")
	}
}
