package api

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/server/access"
)

// FuzzRequest sends any request to any route: no handler panics or fails by itself, and what somebody else has is not read.
func FuzzRequest(f *testing.F) {
	h := open(f, func(o *Options) {
		store := o.Store
		*o = fixtureOptions()
		o.Store = store
	})
	h.do("POST", "/v1/threads", `{"id":"ada-1","user":"ada"}`).is(201)
	h.do("POST", "/v1/threads/=ada-1/contexts/main/messages", `{"messages":[{"text":"very secret"}]}`).is(201)
	h.do("POST", "/v1/threads", `{"id":"b","user":"bob"}`).is(201)
	names := strings.NewReplacer("{thread}", "=b", "{context}", "main", "{branch}", "main", "{checkpoint}", "x", "{summary}", "x", "{key}", "k", "{content}", "x", "{user}", "bob", "{application}", "app")
	for _, r := range h.api.routes {
		row, _ := rowOf(r.pattern)
		f.Add(r.method(), names.Replace(r.path()), row.query, row.body, `"empty"`)
	}
	f.Add("GET", "/v1/threads/=ada-1/contexts/main/messages", "at=main~0", "", "")
	f.Fuzz(func(t *testing.T, method, path, query, body, match string) {
		if strings.HasSuffix(path, "/follow") {
			return // it does not end
		}
		target := (&strings.Builder{})
		target.WriteString(path)
		if query != "" {
			target.WriteString("?" + query)
		}
		r, ok := newRequest(method, target.String(), body)
		if !ok {
			return
		}
		r.Header.Set("If-Match", match)
		r = r.WithContext(access.With(t.Context(), h.callers["bob"]))
		w := httptest.NewRecorder()
		h.mux.ServeHTTP(w, r)
		require.NotEqual(t, 500, w.Code, "%s", w.Body)
		require.NotContains(t, w.Body.String(), "very secret")
	})
}

// newRequest returns a request, if a server could have read it.
func newRequest(method, target, body string) (*http.Request, bool) {
	text := method + " " + target + " HTTP/1.1\r\nHost: x\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
	return r, err == nil
}
