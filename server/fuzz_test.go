package server

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/server/access"
)

func FuzzEventID(f *testing.F) {
	f.Add("1-00000000000000ff")
	f.Add("18446744073709551615-ffffffffffffffff")
	f.Fuzz(func(t *testing.T, text string) {
		if at, err := parseEventID(text); err == nil {
			again, err := parseEventID(eventID(at))
			require.NoError(t, err)
			require.Equal(t, at, again)
		}
	})
}

// FuzzRequest sends any request to every route. None fails the server, and none without credentials is answered.
func FuzzRequest(f *testing.F) {
	for _, path := range []string{"/", "/content/x", "/content/%00", "/v1/events?from=9", "/login", "/act", "//", "/..", "/metrics"} {
		f.Add("GET", path, "same-origin", "lineage-1=x", "", "1-00000000000000ff")
	}
	f.Add("POST", "/act", "none", "lineage-=\"", "Bearer lineage_", "")
	f.Add("OPTIONS", "*", "", "", "null", "")
	f.Fuzz(func(t *testing.T, method, path, site, cookie, authorization, last string) {
		h := fuzzed(t)
		for _, credentials := range []string{"", h.bearer} {
			r, err := http.NewRequest(method, "http://127.0.0.1:"+h.port, strings.NewReader("body"))
			if err != nil {
				t.Skip()
			}
			r.URL.Path, r.URL.RawQuery, _ = strings.Cut(path, "?")
			if !strings.HasPrefix(r.URL.Path, "/") {
				r.URL.Path = "/" + r.URL.Path
			}
			r.RequestURI = "/"
			r.Header.Set("Sec-Fetch-Site", site)
			r.Header.Set("Cookie", cookie)
			r.Header.Set("Last-Event-ID", last)
			r.Header.Set("Authorization", authorization)
			if credentials != "" {
				r.Header.Set("Authorization", credentials)
			}
			ctx, cancel := context.WithCancel(context.WithValue(t.Context(), http.LocalAddrContextKey, net.Addr(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(h.Addr().String())))))
			cancel() // a stream ends at once
			w := httptest.NewRecorder()
			h.http.Handler.ServeHTTP(w, r.WithContext(ctx))
			require.NotEqual(t, http.StatusInternalServerError, w.Code)
			if credentials == "" && w.Code == http.StatusOK {
				require.Contains(t, []string{"/healthz", "/readyz", "/login", "/login.js", "/login.css"}, r.URL.Path)
			}
			require.NotContains(t, w.Body.String(), "acted", "the token is for reading")
		}
	})
}

type fuzzedServer struct {
	*harness
	bearer string
}

// fuzzed returns a server whose token is for reading.
func fuzzed(t *testing.T) *fuzzedServer {
	h := open(t)
	_, bearer, _ := strings.Cut(h.token(access.Token{}), ": ")
	return &fuzzedServer{h, bearer}
}
