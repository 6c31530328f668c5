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
