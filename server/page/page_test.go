package page_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/lineagetest"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/lineage/search"
	"github.com/lineage-store/lineage/lineage/usage"
	"github.com/lineage-store/lineage/server/page"
)

// site is a page on a server without authentication, with the stream of events that the server of a store has.
type site struct {
	t     testing.TB
	store *lineage.Store
	url   string
}

func newSite(t testing.TB, o page.Options) *site {
	t.Helper()
	s := &site{t: t, store: lineagetest.New(t, lineage.Options{})}
	o.Store = s.store
	if o.Search == nil {
		index, err := search.Open(t.Context(), s.store, t.TempDir(), search.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, index.Close()) })
		o.Search = func(ctx context.Context, text string, among *lineage.ThreadQuery, limit int) (hits []page.Hit, err error) {
			q := search.Query{Text: text, Limit: limit}
			if among != nil {
				q.Among = s.store.Threads(ctx, *among)
			}
			found, err := index.Search(ctx, q)
			for _, h := range found {
				hits = append(hits, page.Hit{Entry: h.Entry, Threads: h.Threads, Snippet: h.Snippet})
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
	mux := http.NewServeMux()
	for _, r := range p.Routes() {
		require.Equal(t, strings.HasPrefix(r.Pattern, "POST "), r.Writes, r.Pattern)
		mux.Handle(r.Pattern, r.Handler)
	}
	mux.HandleFunc("GET /v1/events", s.events)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	s.url = server.URL
	return s
}

func (s *site) events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	c := http.NewResponseController(w)
	head, err := s.store.View().Head(r.Context())
	if err != nil {
		return
	}
	fmt.Fprint(w, "retry: 1000\n\n")
	_ = c.Flush()
	for change, err := range s.store.Watch(r.Context(), head) {
		if err != nil {
			return
		}
		var lines []string
		for i := range change.Events {
			line, _ := records.Encode(records.NewEvent(&change, &change.Events[i]))
			lines = append(lines, strings.TrimSpace(string(line)))
		}
		fmt.Fprintf(w, "data: [%s]\n\n", strings.Join(lines, ","))
		if c.Flush() != nil {
			return
		}
	}
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
	r, err := http.Get(s.url + path)
	require.NoError(s.t, err)
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	require.NoError(s.t, err)
	return r.StatusCode, string(body)
}

// post sends a form, and returns the status and where it leads.
func (s *site) post(path string, form url.Values) (int, string) {
	s.t.Helper()
	c := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	r, err := c.PostForm(s.url+path, form)
	require.NoError(s.t, err)
	require.NoError(s.t, r.Body.Close())
	return r.StatusCode, r.Header.Get("Location")
}

// hostile are texts that attack a page.
var hostile = []string{
	`<script>document.title="attacked"</script><img src=x onerror="document.title='attacked'">`,
	"[a](javascript:alert(1)) ![b](http://example.com/pixel.png) <http://example.com> [c](data:text/html,x)",
	"\x1b[31mred\x07 a\u202etxt.exe \u2066x &#x202e; \u200b\ufeff end",
	"```html\n</code></pre><script>attacked()</script>\n```\n| a | b |\n|---|---|\n| <b onmouseover=x> | `</td><script>` |",
	"'\"><svg/onload=alert(1)> {{.Title}} ${1} <!-- -->",
	strings.Repeat("> ", 5000) + "deep",
}

func hostileItems() (items []lineage.Item) {
	for _, text := range hostile {
		items = append(items, lineage.User(text), lineage.Assistant(text).From(text[:min(len(text), 60)]))
	}
	call, _ := json.Marshal(map[string]any{"role": "assistant", "content": []any{
		map[string]any{"type": "thinking", "thinking": hostile[0]},
		map[string]any{"type": "tool_use", "id": "1", "name": hostile[4], "input": map[string]any{"command": hostile[0] + "\n" + hostile[2], "description": hostile[0]}},
		map[string]any{"type": "tool_use", "id": "2", "name": "Edit", "input": map[string]any{"file_path": hostile[0], "old_string": hostile[0], "new_string": hostile[4]}},
	}})
	result, _ := json.Marshal(map[string]any{"role": "user", "content": []any{
		map[string]any{"type": "tool_result", "tool_use_id": "1", "content": hostile[0], "is_error": true},
		map[string]any{"type": "image", "source": map[string]any{"type": "base64", "media_type": "image/svg+xml", "data": base64.StdEncoding.EncodeToString([]byte(`<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>`))}},
	}})
	return append(items, lineage.Item{Role: "assistant", Body: call, Type: "application/json"}, lineage.Item{Role: "user", Body: result, Type: "application/json"},
		lineage.Item{Kind: lineage.Asset, Filename: hostile[0], Body: []byte("<svg onload=alert(1)>"), Type: "image/svg+xml"})
}

// No text of the store becomes markup, is hidden or reorders the page, in any view.
func TestHostileTextIsInert(t *testing.T) {
	s := newSite(t, page.Options{})
	thread, _ := s.thread(lineage.ThreadOptions{Title: hostile[0] + hostile[2], UserID: hostile[4], Metadata: mustJSON(map[string]any{"agent": hostile[4], "cwd": hostile[0]})}, hostileItems()...)
	id := thread.ID().String()
	_, err := thread.CreateBranch(t.Context(), hostile[4], lineage.BranchOptions{})
	require.NoError(t, err)
	for _, path := range []string{"/", "/t/" + id, "/t/" + id + "/graph", "/t/" + id + "/delete", "/search?q=attacked", "/t/" + id + "?did=" + url.QueryEscape(hostile[0]), "/t/" + id + "/graph?name=" + url.QueryEscape(hostile[4]), "/?title=" + url.QueryEscape(hostile[0]), "/search?q=" + url.QueryEscape(hostile[4])} {
		status, body := s.get(path)
		require.Equal(t, 200, status, path)
		require.Equal(t, strings.Count(body, "<script"), strings.Count(body, `<script src="/page.js?`), path)
		for _, bad := range []string{"<img src=x", "<b onmouseover", "<svg/onload", `href="javascript:`, `href="data:`, "src=\"http", "\x1b", "\x07", "\u202e", "\u2066", "\u200b", "\ufeff", "style=\""} {
			require.NotContains(t, body, bad, path)
		}
	}
	_, body := s.get("/t/" + id)
	require.Contains(t, body, `rel="nofollow noreferrer noopener" target="_blank"`)
	require.Contains(t, body, "image: ")
	require.NotContains(t, body, "<img")
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// Only images that can be decoded are sent, and nothing of a message is a document of the page.
func TestImages(t *testing.T) {
	var file bytes.Buffer
	require.NoError(t, png.Encode(&file, image.NewGray(image.Rect(0, 0, 3, 2))))
	s := newSite(t, page.Options{})
	imageURL := func(data []byte) string {
		body := mustJSON(map[string]any{"role": "user", "content": []any{map[string]any{"type": "image", "source": map[string]any{"type": "base64", "media_type": "image/png", "data": base64.StdEncoding.EncodeToString(data)}}}})
		thread, _ := s.thread(lineage.ThreadOptions{}, lineage.Item{Role: "user", Body: body, Type: "application/json"})
		_, page := s.get("/t/" + thread.ID().String())
		_, src, ok := strings.Cut(page, `<img src="`)
		require.True(t, ok)
		src, _, _ = strings.Cut(src, `"`)
		return src
	}
	status, body := s.get(imageURL(file.Bytes()))
	require.Equal(t, 200, status)
	require.Equal(t, file.String(), body)
	r, err := http.Get(s.url + imageURL([]byte("<html><script>alert(1)</script>")))
	require.NoError(t, err)
	require.NoError(t, r.Body.Close())
	require.Equal(t, "application/octet-stream", r.Header.Get("Content-Type"))
	require.Contains(t, r.Header.Get("Content-Disposition"), "attachment")
	require.Contains(t, r.Header.Get("Content-Security-Policy"), "sandbox")
}

// A thread shows only its own messages, though another has equal ids.
func TestThreadsAreApart(t *testing.T) {
	s := newSite(t, page.Options{})
	mine, _ := s.thread(lineage.ThreadOptions{UserID: "ada"}, lineage.User("mine").WithID("1"))
	theirs, other := s.thread(lineage.ThreadOptions{UserID: "bob"}, lineage.User("theirs").WithID("1"))
	tip, err := other.Tip(t.Context())
	require.NoError(t, err)
	id := mine.ID().String()
	for _, path := range []string{"/t/" + id + "?in=" + other.ID().String(), "/t/" + id + "?in=" + tip.String(), "/t/" + id + "/message/" + tip.String(), "/t/" + id + "/sides?a=&b=" + tip.String(), "/t/x", "/t/" + id + "?in=x", "/t/" + id + "/message/x/1"} {
		status, body := s.get(path)
		require.Equal(t, 404, status, path)
		require.NotContains(t, body, "theirs")
	}
	status, body := s.get("/t/" + theirs.ID().String() + "/message/" + tip.String())
	require.Equal(t, 200, status)
	require.Equal(t, "theirs", body)
	_, body = s.get("/?user=bob")
	require.Contains(t, body, theirs.ID().String())
	require.NotContains(t, body, id)
}

// Windows lie around a position, at most a hundred messages, and every message is in one.
func TestWindows(t *testing.T) {
	s := newSite(t, page.Options{})
	var items []lineage.Item
	for i := range 1000 {
		items = append(items, lineage.User(fmt.Sprintf("message %d.", i+1)))
	}
	thread, _ := s.thread(lineage.ThreadOptions{}, items...)
	for query, want := range map[string][2]int{"": {901, 1000}, "?at=500": {467, 566}, "?at=1": {1, 100}, "?at=99999": {967, 1000}, "?from=401&part": {401, 500}, "?to=50&part": {1, 50}, "?from=5000&part": {0, 0}, "?from=9223372036854775807": {0, 0}} {
		status, body := s.get("/t/" + thread.ID().String() + query)
		require.Equal(t, 200, status)
		shown := strings.Count(body, "<article")
		if want[0] == 0 {
			require.Zero(t, shown, query)
			continue
		}
		require.Equal(t, want[1]-want[0]+1, shown, query)
		require.Contains(t, body, fmt.Sprintf("message %d.", want[0]), query)
		require.Contains(t, body, fmt.Sprintf("message %d.", want[1]), query)
	}
}

// Of large messages, a page has the starts, whatever they are; the whole message is at its own address.
func TestLargeMessages(t *testing.T) {
	s := newSite(t, page.Options{})
	large := strings.Repeat("large text ", 200_000)
	items := []lineage.Item{lineage.User(strings.Repeat(large, 5)), {Role: "assistant", Type: "application/json", Body: mustJSON(map[string]any{"role": "assistant", "content": []any{
		map[string]any{"type": "text", "text": large}, map[string]any{"type": "tool_use", "id": "1", "name": "Write", "input": map[string]any{"file_path": "a", "content": large}}}})}}
	for range 30 {
		items = append(items, lineage.Assistant(large))
	}
	thread, main := s.thread(lineage.ThreadOptions{}, items...)
	at := "/t/" + thread.ID().String()
	status, body := s.get(at)
	require.Equal(t, 200, status)
	require.Less(t, len(body), 4<<20)
	require.Contains(t, body, "more bytes are not shown")
	tip, err := main.Tip(t.Context())
	require.NoError(t, err)
	_, body = s.get(at + "/message/" + tip.String())
	require.Equal(t, large, body)
	status, body = s.get("/")
	require.Equal(t, 200, status)
	require.Less(t, len(body), 32<<10)
}

// Every act is done to the store, and what is not right changes nothing.
func TestActing(t *testing.T) {
	s := newSite(t, page.Options{})
	thread, main := s.thread(lineage.ThreadOptions{}, lineage.User("one"), lineage.Assistant("two"), lineage.User("three"))
	at := "/t/" + thread.ID().String()
	status, to := s.post(at+"/rename", url.Values{"title": {"Lisbon"}})
	require.Equal(t, 303, status)
	_, body := s.get(to)
	require.Contains(t, body, "<bdi>Lisbon</bdi>")
	require.Contains(t, body, "Renamed")
	status, to = s.post(at+"/fork", url.Values{"name": {"other"}, "at": {"2"}})
	require.Equal(t, 303, status)
	_, body = s.get(to)
	require.Contains(t, body, "two")
	require.NotContains(t, body, `dir="auto">three`)
	branch, err := thread.Branch(t.Context(), "other")
	require.NoError(t, err)
	require.Equal(t, uint64(2), branch.Length)
	status, _ = s.post(at+"/checkpoint", url.Values{"name": {"before"}, "at": {"1"}})
	require.Equal(t, 303, status)
	_, err = thread.Checkpoint(t.Context(), "before")
	require.NoError(t, err)
	status, _ = s.post(at+"/undo", nil)
	require.Equal(t, 400, status)
	tip, err := main.Tip(t.Context())
	require.NoError(t, err)
	first, err := s.store.At(t.Context(), tip, 1)
	require.NoError(t, err)
	require.NoError(t, main.MoveTo(t.Context(), first, "rewind"))
	status, _ = s.post(at+"/undo", nil)
	require.Equal(t, 303, status)
	n, err := main.Len(t.Context())
	require.NoError(t, err)
	require.Equal(t, uint64(3), n)
	for path, form := range map[string]url.Values{
		"/fork": {"name": {"other"}, "at": {"2"}}, "/fork?": {"name": {"new"}, "at": {"4"}}, "/fork?1": {"name": {"new"}, "at": {"0"}}, "/rename": {"title": {" "}}, "/checkpoint": {"name": {strings.Repeat("x", 500)}, "at": {"1"}},
		"/delete": {"sure": {"yes"}},
	} {
		status, _ := s.post(at+path, form)
		require.GreaterOrEqual(t, status, 400, path)
		require.Less(t, status, 500, path)
	}
	status, body = s.get(at + "/delete")
	require.Equal(t, 200, status)
	require.Contains(t, body, "3 messages on 2 branches")
	status, to = s.post(at+"/delete", url.Values{"sure": {thread.ID().String()}})
	require.Equal(t, 303, status)
	require.Equal(t, "/", to)
	status, _ = s.get(at)
	require.Equal(t, 404, status)
}

func TestAReadOnlyPageHasNoActs(t *testing.T) {
	s := newSite(t, page.Options{ReadOnly: true})
	thread, _ := s.thread(lineage.ThreadOptions{}, lineage.User("one"))
	status, _ := s.post("/t/"+thread.ID().String()+"/rename", url.Values{"title": {"x"}})
	require.Equal(t, 404, status)
	_, body := s.get("/t/" + thread.ID().String())
	require.NotContains(t, body, `method="post"`)
}

// A search is limited by filters in its query, and groups what it found by conversation.
func TestSearching(t *testing.T) {
	s := newSite(t, page.Options{})
	a, _ := s.thread(lineage.ThreadOptions{Title: "first", Metadata: []byte(`{"agent":"codex"}`)}, lineage.User("the tram to Lisbon"), lineage.Assistant("Lisbon it is"))
	b, _ := s.thread(lineage.ThreadOptions{Title: "second"}, lineage.User("Lisbon again"))
	_, body := s.get("/search?q=lisbon")
	require.Contains(t, body, "3 messages in 2 conversations")
	require.Contains(t, body, "<mark>Lisbon</mark>")
	_, body = s.get("/search?q=lisbon+agent:codex")
	require.Contains(t, body, a.ID().String())
	require.NotContains(t, body, b.ID().String())
	_, body = s.get("/search?q=" + b.ID().String())
	require.Contains(t, body, "second")
	status, _ := s.get("/search?q=lisbon+after:yesterday")
	require.Equal(t, 400, status)
	status, body = s.get("/search?q=nothing-like-that")
	require.Equal(t, 200, status)
	require.Contains(t, body, "Nothing has these words.")
}

// The graph draws forks on lanes, and two messages are compared side by side from where they part.
func TestGraphAndSides(t *testing.T) {
	s := newSite(t, page.Options{})
	thread, main := s.thread(lineage.ThreadOptions{}, lineage.User("one"), lineage.Assistant("two"), lineage.User("three"))
	tip, err := main.Tip(t.Context())
	require.NoError(t, err)
	second, err := s.store.At(t.Context(), tip, 2)
	require.NoError(t, err)
	other, err := thread.CreateBranch(t.Context(), "other", lineage.BranchOptions{At: second})
	require.NoError(t, err)
	_, err = other.Extend(t.Context(), lineage.User("elsewhere"))
	require.NoError(t, err)
	at := "/t/" + thread.ID().String()
	_, body := s.get(at + "/graph")
	require.Equal(t, 4, strings.Count(body, "<circle class"))
	require.Equal(t, 3, strings.Count(body, `<path class="lane`))
	require.Contains(t, body, "elsewhere")
	_, body = s.get(at + "/sides?a=&b=" + other.ID().String())
	require.Contains(t, body, "2 messages in common")
	require.Contains(t, body, "three")
	require.Contains(t, body, "elsewhere")
}

// Usage is shown by day and by model; an answer counts once, though a fork has it too.
func TestUsage(t *testing.T) {
	s := newSite(t, page.Options{})
	_, body := s.get("/usage")
	require.Contains(t, body, "No answer in this time says what it cost.")
	answer := func(id, model string, in, out int) lineage.Item {
		body := mustJSON(map[string]any{"id": id, "role": "assistant", "model": model, "content": []any{map[string]any{"type": "text", "text": "done"}}, "usage": map[string]any{"input_tokens": in, "output_tokens": out}})
		return lineage.Item{Role: "assistant", Body: body, Type: "application/json"}.From(model)
	}
	thread, _ := s.thread(lineage.ThreadOptions{}, lineage.User("one"), answer("m1", "claude-sonnet-4-5", 1000, 500), lineage.User("two"), answer("m2", hostile[0], 70, 7))
	_, err := thread.CreateBranch(t.Context(), "copy", lineage.BranchOptions{})
	require.NoError(t, err)
	for _, query := range []string{"", "?by=agent&days=0", "?by=project&days=365", "?by=model&days=7"} {
		status, body := s.get("/usage" + query)
		require.Equal(t, 200, status)
		require.Contains(t, body, "<dt>Answers</dt><dd>2</dd>", query)
		require.Contains(t, body, "<dt>Output</dt><dd>507</dd>", query)
		require.Contains(t, body, `class="sum"`, query)
		require.NotContains(t, body, "<img")
	}
	_, body = s.get("/usage")
	require.Less(t, strings.Index(body, "claude-sonnet-4-5"), strings.Index(body, "&lt;script&gt;document.title"), "the largest is first")
	for _, query := range []string{"?by=thread", "?days=x", "?days=-1", "?days=99999999"} {
		status, _ := s.get("/usage" + query)
		require.Equal(t, 400, status, query)
	}
}

// What a query says is answered, and never fails in the server.
func FuzzQueries(f *testing.F) {
	s := newSite(f, page.Options{})
	thread, main := s.thread(lineage.ThreadOptions{Title: "a"}, lineage.User("one"), lineage.Assistant("two"))
	id := thread.ID().String()
	tip, err := main.Tip(f.Context())
	require.NoError(f, err)
	for _, q := range []string{"", "at=1", "from=0&to=18446744073709551615", "in=" + main.ID().String(), "in=" + tip.String(), "in=" + tip.String() + "0", "after=x&since=2026-01-01", "since=x", "q=%22a", "q=agent:x+NEAR(", "a=&b=", "name=%00&from=-1", "part&did=%ff", "agent=%80"} {
		f.Add(q)
	}
	f.Fuzz(func(t *testing.T, query string) {
		if _, err := url.ParseQuery(query); err != nil || strings.ContainsAny(query, " #\x7f") || strings.ContainsFunc(query, func(r rune) bool { return r < ' ' }) {
			t.Skip()
		}
		for _, path := range []string{"/", "/t/" + id, "/t/" + id + "/graph", "/t/" + id + "/sides", "/search", "/usage", "/t/" + id + "/message/" + tip.String()} {
			r, err := http.Get(s.url + path + "?" + query)
			require.NoError(t, err)
			require.NoError(t, r.Body.Close())
			require.Less(t, r.StatusCode, 500, path+"?"+query)
		}
	})
}
