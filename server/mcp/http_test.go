package mcp

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/server/access"
)

// TestHTTP has callers with several scopes and rights.
func TestHTTP(t *testing.T) {
	b := newBench(t)
	for _, project := range []string{"a", "b", "c"} {
		b.thread(project, "/src/"+project, "user of "+project, lineage.User("of "+project))
	}
	callers := map[string]*access.Caller{
		"all": {Writes: true}, "reader": {}, "a and b": {Writes: true, Scope: access.Scope{Projects: []string{"/src/a", "/src/b"}}},
		"user": {Scope: access.Scope{Users: []string{"user of c"}}},
	}
	handler := b.service.Handler([]string{"append"})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c := callers[r.Header.Get("Caller")]; c != nil {
			r = r.WithContext(access.With(r.Context(), c))
		}
		handler.ServeHTTP(w, r)
	}))
	defer server.Close()

	// A client over HTTP, in the newest revision and an older one.
	connect := func(caller, query, revision string) (*client, error) {
		web := &http.Client{Transport: as(caller)}
		transport := &sdk.StreamableClientTransport{Endpoint: server.URL + query, HTTPClient: web, DisableStandaloneSSE: true, MaxRetries: -1}
		c, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), transport, &sdk.ClientSessionOptions{ProtocolVersion: revision})
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() { _ = c.Close() })
		return &client{t, c}, nil
	}
	for _, revision := range []string{"2026-07-28", "2025-11-25"} {
		for _, one := range []struct {
			caller, query, titles string
			writes                bool
		}{
			{"all", "", "c b a", true}, {"reader", "", "c b a", false}, {"a and b", "", "b a", true}, {"user", "", "c", false},
			{"all", "?project=" + url.QueryEscape("/src/b"), "b", true}, {"all", "?project=%2Fsrc%2Fb&project=%2Fsrc%2Fc", "c b", true},
			{"a and b", "?project=%2Fsrc%2Fb&project=%2Fsrc%2Fc", "b", true}, {"user", "?project=%2Fsrc%2Fa", "", false}, {"all", "?project=%2Fsrc", "", true},
		} {
			c, err := connect(one.caller, one.query, revision)
			require.NoError(t, err)
			var titles []string
			for _, r := range c.ok("threads", nil).Records {
				titles = append(titles, strings.TrimPrefix(r["title"].(string), "Title of "))
			}
			require.ElementsMatch(t, strings.Fields(one.titles), titles, "%v", one)
			tools, err := c.ListTools(t.Context(), nil)
			require.NoError(t, err)
			names := ""
			for _, tool := range tools.Tools {
				names += " " + tool.Name
			}
			require.Equal(t, one.writes, strings.Contains(names, " append"), names)
			require.NotContains(t, names, " fork")
		}
	}
	for caller, query := range map[string]string{"nobody": "", "a and b": "?project=%2Fsrc%2Fc", "all": "?project="} {
		_, err := connect(caller, query, "")
		require.Error(t, err, caller)
	}

	post := func(method, body string, header http.Header) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL, strings.NewReader(body))
		require.NoError(t, err)
		for name, values := range header {
			r.Header[name] = values
		}
		r.Header.Set("Caller", "all")
		response, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer response.Body.Close()
		b, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return response.StatusCode, string(b)
	}
	accept := http.Header{"Accept": {"application/json, text/event-stream"}, "Content-Type": {"application/json"}}
	for _, method := range []string{http.MethodGet, http.MethodDelete, http.MethodPut} {
		status, _ := post(method, "", accept)
		require.Equal(t, http.StatusMethodNotAllowed, status, method)
	}
	status, _ := post(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"x":"`+strings.Repeat("x", MaxRequest)+`"}}`, accept)
	require.Equal(t, http.StatusRequestEntityTooLarge, status)
	for _, deep := range []string{strings.Repeat("[", 1<<20), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":` + strings.Repeat(`{"a":`, 200_000) + "1" + strings.Repeat("}", 200_000) + "}}"} {
		status, body := post(http.MethodPost, deep, accept)
		require.NotEqual(t, http.StatusInternalServerError, status, body)
	}
	status, _ = post(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, accept)
	require.Equal(t, http.StatusOK, status, "it goes on")
	http.DefaultClient.CloseIdleConnections()
}

// as adds a caller to requests.
type as string

func (a as) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Caller", string(a))
	return http.DefaultTransport.RoundTrip(r)
}

// TestClientsComeAndGo: clients that go away in the middle of a call leave nothing behind and disturb nobody.
func TestClientsComeAndGo(t *testing.T) {
	b := newBench(t)
	b.thread("trip", "/src/a", "ada", lineage.User("hello"))
	stays := b.connect(Client{Scope: Everything}, nil)
	started, release := make(chan struct{}, 10), make(chan struct{})
	slow := *b.service
	slow.o.Usage = nil
	slow.o.Search = func(ctx context.Context, _ SearchQuery) ([]Hit, error) {
		started <- struct{}{}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-release:
			return nil, nil
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	ours, theirs := sdk.NewInMemoryTransports()
	server, err := slow.Server(Client{Scope: Everything}).Connect(ctx, ours, nil)
	require.NoError(t, err)
	c, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(ctx, theirs, nil)
	require.NoError(t, err)

	// A call that is cancelled ends.
	one, stop := context.WithCancel(ctx)
	done := make(chan error)
	go func() {
		_, err := c.CallTool(one, &sdk.CallToolParams{Name: "search", Arguments: map[string]any{"query": "x"}})
		done <- err
	}()
	<-started
	stop()
	require.Error(t, <-done)
	_, err = c.CallTool(ctx, &sdk.CallToolParams{Name: "threads"})
	require.NoError(t, err)

	// The client goes away during another one.
	go func() {
		_, err := c.CallTool(ctx, &sdk.CallToolParams{Name: "search", Arguments: map[string]any{"query": "x"}})
		done <- err
	}()
	<-started
	close(release)
	<-done
	require.NoError(t, c.Close())
	require.NoError(t, server.Wait())
	cancel()
	require.Len(t, stays.ok("threads", nil).Records, 1)
}

// TestPanicsEndACall: a defect in a tool ends one call, and the client is not told what is inside.
func TestPanicsEndACall(t *testing.T) {
	b := newBench(t)
	b.thread("trip", "/src/a", "ada", lineage.User("hello"))
	b.service.o.Search = func(context.Context, SearchQuery) ([]Hit, error) { panic("secret inside") }
	c := b.connect(Client{Scope: Everything}, nil)
	c.fails("search", map[string]any{"query": "x"}, errInside.Error())
	require.NotContains(t, c.call("search", map[string]any{"query": "x"}).all, "secret")
	b.service.o.Search = func(context.Context, SearchQuery) ([]Hit, error) { return nil, io.ErrUnexpectedEOF }
	c.fails("search", map[string]any{"query": "x"}, errInside.Error())
	c.ok("threads", nil)
}

// A search says how many commits it does not see yet.
//
//test:norace
func TestSearchBehind(t *testing.T) {
	b := newBench(t)
	b.service.o.Search = func(_ context.Context, q SearchQuery) ([]Hit, error) {
		q.Behind(1234)
		return nil, nil
	}
	c := b.connect(Client{Scope: Everything}, nil)
	require.Contains(t, c.ok("search", map[string]any{"query": "x"}).all, "what the last 1,234 commits added is not found yet")
}
