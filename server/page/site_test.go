package page_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/browser"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/lineagetest"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/lineage/search"
	"github.com/lineage-store/lineage/lineage/usage"
	"github.com/lineage-store/lineage/server"
	"github.com/lineage-store/lineage/server/access"
	"github.com/lineage-store/lineage/server/page"
)

// patient are the limits of a server of tests: the machine may be slow.
var patient = server.Limits{Header: time.Hour, Body: time.Hour, Write: time.Hour}

// site is a page on a server as 'lineage serve' starts it, of a store in memory.
type site struct {
	t      testing.TB
	store  *lineage.Store
	server *server.Server
	url    string
	client *http.Client // with a token for everything
}

func newSite(t testing.TB, o page.Options) *site {
	t.Helper()
	if o.Store == nil {
		o.Store = lineagetest.New(t, lineage.Options{})
	}
	s := &site{t: t, store: o.Store}
	if o.Search == nil {
		index, err := search.Open(t.Context(), s.store, t.TempDir(), search.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, index.Close()) })
		o.Search = func(ctx context.Context, q page.SearchQuery) (hits []page.Hit, err error) {
			query := search.Query{Text: q.Text, Limit: q.Limit}
			if q.Among != nil {
				query.Among = s.store.Threads(ctx, *q.Among)
			}
			found, err := index.Search(ctx, query)
			for _, h := range found {
				hits = append(hits, page.Hit{Entry: h.Entry, Role: h.Role, Threads: h.Threads, Snippet: h.Snippet})
			}
			return hits, err
		}
	}
	if o.Usage == nil {
		index, err := usage.Open(t.Context(), s.store, t.TempDir(), usage.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, index.Close()) })
		o.Usage = func(ctx context.Context, q page.UsageQuery) (rows []*records.Usage, total *records.Usage, err error) {
			by := []usage.By{usage.By(q.By)}
			report, err := index.Report(ctx, usage.Query{By: by, Since: q.Since})
			if err != nil {
				return nil, nil, err
			}
			return report.Records(by), report.TotalRecord(), nil
		}
	}
	p, err := page.New(o)
	require.NoError(t, err)
	for _, r := range p.Routes() {
		require.Equal(t, strings.HasPrefix(r.Pattern, "POST "), r.Writes, r.Pattern)
	}
	tokens := access.Open(t.TempDir(), s.store.ID())
	_, secret, err := tokens.Create(t.Context(), access.Token{Writes: true})
	require.NoError(t, err)
	s.server, err = server.Open(t.Context(), server.Options{Store: s.store, Access: tokens, Routes: p.Routes(), ReadOnly: o.ReadOnly, Listen: "127.0.0.1:0", Limits: patient})
	require.NoError(t, err)
	s.url = s.server.URL()
	transport := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, s.server.Addr().String())
	}}
	s.client = &http.Client{Transport: bearer{transport, secret}}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		require.NoError(t, s.server.Close(context.WithoutCancel(t.Context())))
	})
	return s
}

// bearer sends a token with each request.
type bearer struct {
	http.RoundTripper
	secret string
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.secret)
	return b.RoundTripper.RoundTrip(r)
}

// tab opens a browser with a session of the page.
func (s *site) tab() *browser.Tab {
	s.t.Helper()
	b := browser.Open(s.t)
	b.Do(chromedp.Navigate(s.server.Link()))
	until(b, `document.body.dataset.view === "home"`)
	return b
}

// thread creates a thread with messages, and returns its active branch.
func (s *site) thread(o lineage.ThreadOptions, items ...lineage.Item) (*lineage.Thread, *lineage.Context) {
	s.t.Helper()
	thread, err := s.store.CreateThread(s.t.Context(), o)
	require.NoError(s.t, err)
	main, err := thread.Active(s.t.Context())
	require.NoError(s.t, err)
	if len(items) > 0 {
		_, err = main.Extend(s.t.Context(), items...)
		require.NoError(s.t, err)
	}
	return thread, main
}

// get returns the status and the body of an address.
func (s *site) get(path string) (int, string) {
	s.t.Helper()
	r, err := s.client.Get(s.url + path)
	require.NoError(s.t, err)
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	require.NoError(s.t, err)
	return r.StatusCode, string(body)
}

// post sends a form, and returns the status and where it leads.
func (s *site) post(path string, form url.Values) (int, string) {
	s.t.Helper()
	c := &http.Client{Transport: s.client.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	r, err := c.PostForm(s.url+path, form)
	require.NoError(s.t, err)
	require.NoError(s.t, r.Body.Close())
	return r.StatusCode, r.Header.Get("Location")
}
