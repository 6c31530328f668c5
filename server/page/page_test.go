package page_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"image"
	"image/png"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/server/attachment"
	"github.com/lineage-store/lineage/server/page"
)

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
	other, err := thread.CreateBranch(t.Context(), hostile[4], lineage.BranchOptions{})
	require.NoError(t, err)
	tip, err := other.Tip(t.Context())
	require.NoError(t, err)
	for _, path := range []string{"/", "/t/" + id, "/t/" + id + "/graph", "/t/" + id + "/delete", "/t/" + id + "/map", "/t/" + id + "/edit?at=1", "/t/" + id + "/where/" + tip.String(), "/search?q=attacked", "/t/" + id + "?did=" + url.QueryEscape(hostile[0]), "/t/" + id + "/graph?name=" + url.QueryEscape(hostile[4]), "/?title=" + url.QueryEscape(hostile[0]), "/search?q=" + url.QueryEscape(hostile[4])} {
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
	r, err := s.client.Get(s.url + imageURL([]byte("<html><script>alert(1)</script>")))
	require.NoError(t, err)
	require.NoError(t, r.Body.Close())
	require.Equal(t, "application/octet-stream", r.Header.Get("Content-Type"))
	require.Contains(t, r.Header.Get("Content-Disposition"), "attachment")
	require.Contains(t, r.Header.Get("Content-Security-Policy"), "sandbox")
}

// The exact message is a text in a sandbox, whatever it contains.
func TestExactIsText(t *testing.T) {
	s := newSite(t, page.Options{})
	body := "<!doctype html><script>" + hostile[0] + "</script>"
	thread, main := s.thread(lineage.ThreadOptions{}, lineage.Item{Role: "user", Body: []byte(body), Type: "text/html"})
	r, err := s.client.Get(s.url + "/t/" + thread.ID().String() + "/message/" + s.first(main).String())
	require.NoError(t, err)
	got, err := io.ReadAll(r.Body)
	require.NoError(t, errors.Join(err, r.Body.Close()))
	require.Equal(t, body, string(got))
	require.Equal(t, "text/plain; charset=utf-8", r.Header.Get("Content-Type"))
	require.Equal(t, "nosniff", r.Header.Get("X-Content-Type-Options"))
	require.Equal(t, attachment.Policy, r.Header.Get("Content-Security-Policy"))
}

// A form that is larger than what it may contain is refused before it is parsed.
func TestFormsAreLimited(t *testing.T) {
	s := newSite(t, page.Options{})
	thread, _ := s.thread(lineage.ThreadOptions{}, lineage.User("one"))
	at := "/t/" + thread.ID().String()
	for act, form := range map[string]url.Values{
		"/rename": s.with(at, at+"/rename", "title", "new"),
		"/edit":   s.editing(at + "/edit?at=1"),
	} {
		form.Set("text", "two")
		size := map[string]int{"/rename": 16 << 10, "/edit": 3*256<<10 + 16<<10}[act]
		form.Set("more", strings.Repeat("x", size-len(form.Encode())-len("&more=")+1))
		require.Len(t, form.Encode(), size+1)
		status, _ := s.post(at+act, form)
		require.Equal(t, 400, status, act)
		form.Set("more", form.Get("more")[1:])
		status, _ = s.post(at+act, form)
		require.Equal(t, 303, status, act)
	}
}

// A thread shows only its own messages, though another has equal ids.
func TestThreadsAreApart(t *testing.T) {
	s := newSite(t, page.Options{})
	mine, _ := s.thread(lineage.ThreadOptions{UserID: "ada"}, lineage.User("mine").WithID("1"))
	theirs, other := s.thread(lineage.ThreadOptions{UserID: "bob"}, lineage.User("theirs").WithID("1"))
	tip, err := other.Tip(t.Context())
	require.NoError(t, err)
	id := mine.ID().String()
	for _, path := range []string{"/t/" + id + "?in=" + other.ID().String(), "/t/" + id + "?in=" + tip.String(), "/t/" + id + "/message/" + tip.String(), "/t/" + id + "/where/" + tip.String(), "/t/" + id + "/map?in=" + tip.String(), "/t/" + id + "/edit?at=1&in=" + other.ID().String(), "/t/" + id + "/sides?a=&b=" + tip.String(), "/t/x", "/t/" + id + "?in=x", "/t/" + id + "/message/x/1"} {
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

// An address may name a branch. The links of the view have its id, as its name can be given to another one.
func TestBranchesByName(t *testing.T) {
	s := newSite(t, page.Options{})
	thread, main := s.thread(lineage.ThreadOptions{}, lineage.User("asked"))
	const name = "a/b %41 é"
	other, err := thread.CreateBranch(t.Context(), name, lineage.BranchOptions{From: main})
	require.NoError(t, err)
	_, err = other.Extend(t.Context(), lineage.Assistant("answered there"))
	require.NoError(t, err)
	at := "/t/" + thread.ID().String()
	status, body := s.get(at + "?in=" + url.QueryEscape(name))
	require.Equal(t, 200, status)
	require.Contains(t, body, "answered there")
	require.Contains(t, body, "in="+other.ID().String())
	status, body = s.get(at + "/sides?a=main&b=" + url.QueryEscape(name))
	require.Equal(t, 200, status)
	require.Contains(t, body, "answered there")
	status, _ = s.get(at + "?in=nowhere")
	require.Equal(t, 404, status)
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

// with returns what a form of a page has, hidden fields and all, and what a person enters.
func (s *site) with(page, action string, entered ...string) url.Values {
	s.t.Helper()
	_, body := s.get(page)
	_, form, found := strings.Cut(body, `action="`+action+`">`)
	require.True(s.t, found, action)
	form, _, _ = strings.Cut(form, "</form>")
	values := url.Values{}
	for _, hidden := range regexp.MustCompile(`<input type="hidden" name="(\w+)" value="([^"]*)">`).FindAllStringSubmatch(form, -1) {
		values.Set(hidden[1], html.UnescapeString(hidden[2]))
	}
	for i := 0; i < len(entered); i += 2 {
		values.Set(entered[i], entered[i+1])
	}
	return values
}

// Every act is done to the store, and what is not right changes nothing.
func TestActing(t *testing.T) {
	s := newSite(t, page.Options{})
	thread, main := s.thread(lineage.ThreadOptions{Title: "a \u202e title "}, lineage.User("one"), lineage.Assistant("two"), lineage.User("three"))
	at := "/t/" + thread.ID().String()
	status, to := s.post(at+"/rename", s.with(at, at+"/rename", "title", "Lisbon"))
	require.Equal(t, 303, status)
	_, body := s.get(to)
	require.Contains(t, body, "<bdi>Lisbon</bdi>")
	require.Contains(t, body, "Renamed")
	status, to = s.post(at+"/fork", s.with(at, at+"/fork", "name", "other", "at", "2"))
	require.Equal(t, 303, status)
	_, body = s.get(to)
	require.Contains(t, body, "two")
	require.NotContains(t, body, `dir="auto">three`)
	branch, err := thread.Branch(t.Context(), "other")
	require.NoError(t, err)
	require.Equal(t, uint64(2), branch.Length)
	status, _ = s.post(at+"/checkpoint", s.with(at, at+"/checkpoint", "name", "before", "at", "1"))
	require.Equal(t, 303, status)
	_, err = thread.Checkpoint(t.Context(), "before")
	require.NoError(t, err)
	status, _ = s.post(at+"/undo", s.with(at, at+"/undo"))
	require.Equal(t, 400, status)
	tip, err := main.Tip(t.Context())
	require.NoError(t, err)
	first, err := s.store.At(t.Context(), tip, 1)
	require.NoError(t, err)
	require.NoError(t, main.MoveTo(t.Context(), first, "rewind"))
	status, _ = s.post(at+"/undo", s.with(at, at+"/undo"))
	require.Equal(t, 303, status)
	n, err := main.Len(t.Context())
	require.NoError(t, err)
	require.Equal(t, uint64(3), n)
	for _, wrong := range []struct {
		path string
		form url.Values
	}{
		{"/fork", s.with(at, at+"/fork", "name", "other", "at", "2")},
		{"/fork", s.with(at, at+"/fork", "name", "new", "at", "4")},
		{"/fork", s.with(at, at+"/fork", "name", "new", "at", "0")},
		{"/fork", s.with(at, at+"/fork", "name", "new", "at", "1", "tip", "x")},
		{"/fork", s.with(at, at+"/fork", "name", "new", "at", "1", "in", "x")},
		{"/fork", url.Values{"name": {"new"}, "at": {"1"}}},
		{"/rename", s.with(at, at+"/rename", "title", " ")},
		{"/checkpoint", s.with(at, at+"/checkpoint", "name", strings.Repeat("x", 500), "at", "1")},
		{"/undo", nil},
		{"/delete", url.Values{"sure": {"yes"}}},
	} {
		status, _ := s.post(at+wrong.path, wrong.form)
		require.GreaterOrEqual(t, status, 400, wrong)
		require.Less(t, status, 500, wrong)
	}
	all, err := thread.Branches(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 2)
	status, body = s.get(at + "/delete")
	require.Equal(t, 200, status)
	require.Contains(t, body, "3 messages on 2 branches")
	status, to = s.post(at+"/delete", s.with(at+"/delete", at+"/delete"))
	require.Equal(t, 303, status)
	require.Equal(t, "/", to)
	status, _ = s.get(at)
	require.Equal(t, 404, status)
}

// An act is about what was shown: if that has changed, nothing is done, and the answer says so. A branch that has only
// grown has the messages that were shown.
func TestActsAreAboutWhatIsShown(t *testing.T) {
	s := newSite(t, page.Options{})
	thread, main := s.thread(lineage.ThreadOptions{Title: "was"}, lineage.User("one"), lineage.Assistant("two"), lineage.User("three"))
	at := "/t/" + thread.ID().String()
	forms := func() map[string]url.Values {
		return map[string]url.Values{
			"/fork": s.with(at, at+"/fork", "name", "new", "at", "2"), "/checkpoint": s.with(at, at+"/checkpoint", "name", "new", "at", "2"), "/undo": s.with(at, at+"/undo"),
		}
	}
	state := func() (all []any) {
		t.Helper()
		branches, err := thread.Branches(t.Context())
		require.NoError(t, err)
		checkpoints, err := thread.Checkpoints(t.Context())
		require.NoError(t, err)
		info, err := thread.Info(t.Context())
		require.NoError(t, err)
		return []any{branches, checkpoints, info.Title}
	}
	refused := func(path string, form url.Values) {
		t.Helper()
		before := state()
		r, err := s.client.PostForm(s.url+at+path, form)
		require.NoError(t, err)
		body, err := io.ReadAll(r.Body)
		require.NoError(t, errors.Join(err, r.Body.Close()))
		require.Equal(t, 409, r.StatusCode, path)
		require.Contains(t, string(body), "Nothing was done")
		require.Equal(t, before, state(), path)
	}
	tip, err := main.Tip(t.Context())
	require.NoError(t, err)
	first, err := s.store.At(t.Context(), tip, 1)
	require.NoError(t, err)

	old := forms()
	require.NoError(t, main.MoveTo(t.Context(), first, "rewind"))
	_, err = main.Extend(t.Context(), lineage.Assistant("another two"), lineage.User("another three"), lineage.User("four"))
	require.NoError(t, err)
	for path, form := range old { // the branch was moved and has grown
		refused(path, form)
	}

	old = forms()
	other, err := thread.CreateBranch(t.Context(), "other", lineage.BranchOptions{Switch: true})
	require.NoError(t, err)
	for path, form := range old { // another branch is active
		refused(path, form)
	}

	require.NoError(t, other.MoveTo(t.Context(), first, "rewind"))
	_, err = other.Extend(t.Context(), lineage.User("a third two"))
	require.NoError(t, err)
	old = forms()
	_, err = other.Extend(t.Context(), lineage.User("five"))
	require.NoError(t, err)
	refused("/undo", old["/undo"])
	status, _ := s.post(at+"/fork", old["/fork"])
	require.Equal(t, 303, status)
	made, err := thread.Branch(t.Context(), "new")
	require.NoError(t, err)
	require.Equal(t, uint64(2), made.Length)

	form := s.with(at, at+"/rename", "title", "mine")
	require.NoError(t, thread.Update(t.Context(), func(i *lineage.ThreadInfo) error { i.Title = "theirs"; return nil }))
	refused("/rename", form)
}

func TestAReadOnlyPageHasNoActs(t *testing.T) {
	s := newSite(t, page.Options{ReadOnly: true})
	thread, _ := s.thread(lineage.ThreadOptions{}, lineage.User("one"))
	for _, act := range []string{"rename", "fork", "checkpoint", "undo", "delete", "edit"} {
		status, _ := s.post("/t/"+thread.ID().String()+"/"+act, url.Values{"title": {"x"}})
		require.Contains(t, []int{404, 405}, status, act)
	}
	_, body := s.get("/t/" + thread.ID().String())
	require.NotContains(t, body, `method="post"`)
	require.NotContains(t, body, "/edit")
	require.NotContains(t, body, `data-act="fork"`)
	status, _ := s.get("/t/" + thread.ID().String() + "/edit?at=1")
	require.Equal(t, 404, status)
}

// A search is limited by filters in its query, and groups what it found by conversation. Ids and titles come first, and
// filters alone list conversations.
func TestSearching(t *testing.T) {
	s := newSite(t, page.Options{})
	a, _ := s.thread(lineage.ThreadOptions{Title: "first", SourceID: "session-1", Metadata: []byte(`{"agent":"codex","cwd":"/home/ada/my app"}`)}, lineage.User("the tram to Lisbon"), lineage.Assistant("Lisbon it is"))
	b, _ := s.thread(lineage.ThreadOptions{Title: "second Lisbon"}, lineage.User("Lisbon again"), lineage.User("what agent:codex means"))
	shown := func(query string) (found []string) {
		t.Helper()
		status, body := s.get("/search?q=" + url.QueryEscape(query))
		require.Equal(t, 200, status, query)
		for _, m := range regexp.MustCompile(`class="row[^"]*" data-id="([^"]*)"`).FindAllStringSubmatch(body, -1) {
			found = append(found, map[string]string{a.ID().String(): "a", b.ID().String(): "b"}[m[1]])
		}
		return found
	}
	_, body := s.get("/search?q=lisbon")
	require.Contains(t, body, "3 messages in 2 conversations")
	require.Contains(t, body, "<mark>Lisbon</mark>")
	for query, want := range map[string][]string{
		"lisbon agent:codex": {"a"}, "agent:codex": {"a"}, "agent:codex AND (lisbon OR nothing)": {"a"}, `project:"/home/ada/my app" tram`: {"a"}, "agent:nobody": nil, "after:2020 before:2021": nil,
		"after:2020": {"b", "a"}, `"agent:codex"`: {"b"}, `"what agent:codex means"`: {"b"}, b.ID().String(): {"b"}, a.ID().Short(): {"a"}, "session-1": {"a"},
		"second": {"b"}, "SECOND lis": {"b"}, "second agent:codex": nil, "nothing-like-that": nil, "": nil, "agent:": {"b"},
	} {
		require.ElementsMatch(t, want, shown(query), query)
	}
	require.Equal(t, "b", shown("second Lisbon")[0], "titles are first")
	s.thread(lineage.ThreadOptions{}, lineage.Item{Role: "user", Type: "application/json", Body: []byte(`{"lang":"en","role":"prompter","text":"Porto by train","emojis":{"+1":1},"note":"of Porto"}`)})
	hit := func(query string) string {
		t.Helper()
		_, body := s.get("/search?q=" + url.QueryEscape(query))
		_, hit, found := strings.Cut(body, `<ol class="hits">`)
		require.True(t, found)
		hit, _, _ = strings.Cut(hit, "</a>")
		return hit
	}
	require.Contains(t, hit("porto"), "<bdi><mark>Porto</mark> by train</bdi>", "and no data")
	require.Contains(t, hit("porto en"), "<mark>en</mark>", "which is shown where it was found")
	for _, query := range []string{"lisbon after:yesterday", "lisbon OR agent:codex", "lisbon NOT agent:codex", "lisbon agent:codex agent:pi", strings.Repeat("é", 800)} {
		status, body := s.get("/search?q=" + url.QueryEscape(query))
		require.Equal(t, 400, status)
		require.Contains(t, body, `<span role="alert">`)
		require.Contains(t, body, `id="results"`)
	}
	_, body = s.get("/search?q=nothing-like-that")
	require.Contains(t, body, "Nothing has these words.")
}

// A message that is one of several, because it was edited or asked for again, says so and leads to the others.
func TestRetries(t *testing.T) {
	s := newSite(t, page.Options{})
	thread, main := s.thread(lineage.ThreadOptions{}, lineage.User("one"), lineage.Assistant("two"), lineage.User("three"))
	_, elsewhere := s.thread(lineage.ThreadOptions{}, lineage.User("one"))
	tip, err := main.Tip(t.Context())
	require.NoError(t, err)
	second, err := s.store.At(t.Context(), tip, 2)
	require.NoError(t, err)
	for _, text := range []string{"another two", "a third two"} {
		again, err := main.Retry(t.Context(), second, lineage.Overrides{})
		require.NoError(t, err)
		_, err = again.Extend(t.Context(), lineage.Assistant(text))
		require.NoError(t, err)
	}
	other, err := thread.CreateBranch(t.Context(), "edited", lineage.BranchOptions{Empty: true})
	require.NoError(t, err)
	_, err = other.Extend(t.Context(), lineage.User("edited one"), lineage.Assistant("edited two"))
	require.NoError(t, err)
	_, err = s.store.NewContext(t.Context(), lineage.ContextOptions{}) // a history of no thread
	require.NoError(t, err)
	_, err = elsewhere.Extend(t.Context(), lineage.Assistant("two"))
	require.NoError(t, err)
	at := "/t/" + thread.ID().String()
	links := regexp.MustCompile(`<span class="retries">(?:<a href="([^"]*)" rel="prev"[^>]*>‹</a> )?(\d+ of \d+)(?: <a href="([^"]*)" rel="next"[^>]*>›</a>)?</span>`)
	_, body := s.get(at)
	found := links.FindAllStringSubmatch(body, -1)
	require.Len(t, found, 2)
	require.Equal(t, []string{"", "1 of 2"}, found[0][1:3])
	require.Equal(t, []string{"", "1 of 3"}, found[1][1:3])
	_, edited := s.get(html.UnescapeString(found[0][3]))
	require.Contains(t, edited, "edited two")
	to := found[1]
	for i, text := range []string{"another two", "a third two"} {
		_, body = s.get(html.UnescapeString(to[3]))
		require.Contains(t, body, text)
		found = links.FindAllStringSubmatch(body, -1)
		require.Len(t, found, 2)
		to = found[1]
		require.Equal(t, fmt.Sprintf("%d of 3", i+2), to[2])
	}
	require.Empty(t, to[3])
	tip, err = main.Tip(t.Context())
	require.NoError(t, err)
	_, body = s.get(at + "?in=" + tip.String()) // a message, not a branch
	require.Len(t, links.FindAllString(body, -1), 2)
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
	require.Equal(t, 4, strings.Count(body, `<path class="dot`))
	require.Equal(t, 3, strings.Count(body, `<path class="lane`))
	require.Contains(t, body, "elsewhere")
	_, body = s.get(at + "/sides?a=&b=" + other.ID().String())
	require.Contains(t, body, "2 messages in common")
	end, err := other.Tip(t.Context())
	require.NoError(t, err)
	_, body = s.get(at + "/sides?a=" + second.String() + "&b=" + end.String())
	require.Contains(t, body, ">message 2<")
	require.Contains(t, body, ">other<", "a message is called by the branch that ends there")
	_, body = s.get(at + "/sides?a=&b=" + other.ID().String())
	require.Contains(t, body, "three")
	require.Contains(t, body, "elsewhere")
}

// Usage is shown by day and by model; an answer counts once, though a fork has it too.
func TestUsage(t *testing.T) {
	s := newSite(t, page.Options{})
	_, body := s.get("/usage")
	require.Contains(t, body, "No answer in this time says what it cost.")
	at := time.Now() // of all, because midnight may come
	answer := func(id, model string, in, out int) lineage.Item {
		body := mustJSON(map[string]any{"id": id, "role": "assistant", "model": model, "content": []any{map[string]any{"type": "text", "text": "done"}}, "usage": map[string]any{"input_tokens": in, "output_tokens": out}})
		return lineage.Item{Role: "assistant", Body: body, Type: "application/json", CreatedAt: at}.From(model)
	}
	thread, _ := s.thread(lineage.ThreadOptions{}, lineage.User("one"), answer("m1", "claude-sonnet-4-5", 1000, 500), lineage.User("two"), answer("m2", hostile[0], 70, 7), lineage.User(strings.Repeat("the same ", 2000)), lineage.User(strings.Repeat("the same ", 2000)))
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
	_, body = s.get("/usage?days=365")
	require.Contains(t, body, `class="heat h4"`)
	require.Contains(t, body, "is stored once", "the same text is said twice")
	days := strings.Count(body, `class="heat `)
	require.Greater(t, days, 52*7)
	require.LessOrEqual(t, days, 53*7)
	require.Equal(t, days-1, strings.Count(body, `class="heat h0"`))
	_, body = s.get("/usage")
	require.NotContains(t, body, `class="heat `)
	require.Less(t, strings.Index(body, "claude-sonnet-4-5"), strings.Index(body, "&lt;script&gt;document.title"), "the largest is first")
	for _, query := range []string{"?by=thread", "?days=x", "?days=-1", "?days=99999999"} {
		status, _ := s.get("/usage" + query)
		require.Equal(t, 400, status, query)
	}
}

// Tokens written to a cache are those of all lifetimes.
func TestUsageOfCaches(t *testing.T) {
	s := newSite(t, page.Options{})
	answer := func(id string, short, hour int) lineage.Item {
		body := mustJSON(map[string]any{"id": id, "role": "assistant", "model": "claude-sonnet-4-5", "content": []any{map[string]any{"type": "text", "text": "done"}},
			"usage": map[string]any{"input_tokens": 1, "output_tokens": 2, "cache_creation_input_tokens": short + hour,
				"cache_creation": map[string]any{"ephemeral_5m_input_tokens": short, "ephemeral_1h_input_tokens": hour}}})
		return lineage.Item{Role: "assistant", Body: body, Type: "application/json"}.From("claude-sonnet-4-5")
	}
	s.thread(lineage.ThreadOptions{}, lineage.User("one"), answer("m1", 0, 3000), answer("m2", 20, 300))
	_, body := s.get("/usage")
	require.Contains(t, body, "<dt>To cache</dt><dd>3320</dd>")
	require.Contains(t, body, "<td>3320</td>")
}

// What a query says is answered, and never fails in the server.
func FuzzQueries(f *testing.F) {
	s := newSite(f, page.Options{Agents: []string{"codex"}, Resume: func(context.Context, page.ResumeQuery) (*page.Resumed, error) {
		return nil, page.ErrNoSession
	}})
	thread, main := s.thread(lineage.ThreadOptions{Title: "a"}, lineage.User("one"), lineage.Assistant("two"))
	id := thread.ID().String()
	tip, err := main.Tip(f.Context())
	require.NoError(f, err)
	for _, q := range []string{"", "at=1", "from=0&to=18446744073709551615", "in=" + main.ID().String(), "in=" + tip.String(), "in=" + tip.String() + "0", "after=x&since=2026-01-01", "since=x", "q=%22a", "q=agent:x+NEAR(", "a=&b=", "name=%00&from=-1", "part&did=%ff", "at=1&index=0", "at=1&index=-1&prompt=next", "part=inside&in=x", "part=inside", "agent=%80"} {
		f.Add(q)
	}
	f.Fuzz(func(t *testing.T, query string) {
		if _, err := url.ParseQuery(query); err != nil || strings.ContainsAny(query, " #\x7f") || strings.ContainsFunc(query, func(r rune) bool { return r < ' ' }) {
			t.Skip()
		}
		for _, path := range []string{"/", "/t/" + id, "/t/" + id + "/graph", "/t/" + id + "/sides", "/search", "/usage", "/t/" + id + "/message/" + tip.String(), "/t/" + id + "/where/" + tip.String(), "/t/" + id + "/map", "/t/" + id + "/prompts", "/t/" + id + "/edit", "/t/" + id + "/delete", "/t/" + id + "/resume", "/t/" + id + "/image/" + tip.String() + "/" + url.PathEscape(query), "/t/" + url.PathEscape(query)} {
			r, err := s.client.Get(s.url + path + "?" + query)
			require.NoError(t, err)
			require.NoError(t, r.Body.Close())
			require.Less(t, r.StatusCode, 500, path+"?"+query)
		}
	})
}

// FuzzForms sends any form to every act. None fails the server, and none deletes what it does not name.
func FuzzForms(f *testing.F) {
	s := newSite(f, page.Options{})
	thread, main := s.thread(lineage.ThreadOptions{Title: "a"}, lineage.User("one"), lineage.Assistant("two"))
	tip, err := main.Tip(f.Context())
	require.NoError(f, err)
	shown := "in=&context=" + main.ID().String() + "&tip=" + url.QueryEscape(tip.String())
	for _, form := range []string{
		"", "title=b&was=x", shown + "&name=x&at=1", shown + "&name=%00&at=99999999999", shown + "&name=main&at=2&index=-1&text=x&was=&replay=all", "sure=x", "name=" + strings.Repeat("n", 500), "%", "in=%ff&context=x&tip=0/0",
	} {
		f.Add(form)
	}
	f.Fuzz(func(t *testing.T, form string) {
		for _, act := range []string{"rename", "fork", "checkpoint", "undo", "edit", "delete"} {
			c := &http.Client{Transport: s.client.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
			r, err := c.Post(s.url+"/t/"+thread.ID().String()+"/"+act, "application/x-www-form-urlencoded", strings.NewReader(form))
			require.NoError(t, err)
			require.NoError(t, r.Body.Close())
			require.Less(t, r.StatusCode, 500, act+" "+form)
		}
		_, err := thread.Info(t.Context())
		require.NoError(t, err)
	})
}

// A search says how much it does not see yet.
func TestSearchBehind(t *testing.T) {
	s := newSite(t, page.Options{Search: func(_ context.Context, q page.SearchQuery) ([]page.Hit, error) {
		q.Behind(1234)
		return nil, nil
	}})
	_, body := s.get("/search?q=" + url.QueryEscape("a b&c"))
	require.Contains(t, body, "changes cannot be found yet")
	require.Contains(t, body, `href="/search?q=a%20b%26c"`)
	require.NotContains(t, body, "Nothing has these words")
}
