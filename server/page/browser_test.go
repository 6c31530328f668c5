package page_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/browser"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/server/page"
)

// eval returns the value of an expression.
func eval[T any](b *browser.Tab, expression string) T {
	return browser.Get(b, chromedp.Evaluate[T](expression))
}

// until waits until the script has run and an expression is true, also on the page that is loaded next.
func until(b *browser.Tab, expression string) {
	b.Until(`document.documentElement.classList.contains("js") && !!(` + expression + `)`)
}

func open(b *browser.Tab, address string) {
	b.Do(chromedp.Navigate(address), chromedp.WaitVisible(chromedp.CSS("main")))
}

// own returns the requests to other hosts than the site's.
func (s *site) own(b *browser.Tab) (others []string) {
	for _, r := range b.Requests() {
		if !strings.HasPrefix(r, s.url) && !strings.HasPrefix(r, "data:") { // the icons of the browser's own controls
			others = append(others, r)
		}
	}
	return others
}

// In a browser, hostile texts run nothing, load nothing, break no policy, and are as wide as the screen on a phone.
func TestBrowserHostileText(t *testing.T) {
	s := newSite(t, page.Options{})
	thread, _ := s.thread(lineage.ThreadOptions{Title: hostile[0], Metadata: mustJSON(map[string]any{"agent": hostile[4], "cwd": strings.Repeat("long", 200)})},
		append(hostileItems(), lineage.User(strings.Repeat("w", 5000)), lineage.Assistant("```\n"+strings.Repeat("x", 5000)+"\n```\n\n|a|\n|-|\n|"+strings.Repeat("y", 3000)+"|"))...)
	id := thread.ID().String()
	long, _ := s.thread(lineage.ThreadOptions{Title: strings.Repeat("title", 60)}, lineage.User("hello"))
	longID := long.ID().String()
	b := s.tab()
	b.Do(chromedp.EmulateViewport(360, 740))
	for _, path := range []string{"/", "/t/" + longID, "/t/" + longID + "/graph", "/t/" + longID + "/delete", "/t/" + longID + "/edit?at=1", "/t/" + id, "/t/" + id + "/graph", "/search?q=attacked", "/t/" + id + "/sides?a=&b=", "/t/" + id + "/delete", "/t/" + id + "/edit?at=1", "/t/nothing"} {
		open(b, s.url+path)
		require.NotEqual(t, "attacked", eval[string](b, `document.title`))
		require.LessOrEqual(t, eval[int](b, `document.documentElement.scrollWidth`), 360, "%s: %s", path,
			eval[string](b, `[...document.querySelectorAll("main *")].filter((e) => { const r = e.getBoundingClientRect().right; return r > 361 && Math.abs(r - document.documentElement.scrollWidth) < 40; }).map((e) => e.tagName + "." + e.className + JSON.stringify(e.getBoundingClientRect())).slice(0, 4).join(" ")`))
	}
	require.Empty(t, s.own(b))
	for _, p := range b.Problems() {
		require.Contains(t, p, "404", "only the page that is not there fails") // the last address
	}
}

// While a thousand messages are appended, the first visible message does not move by a pixel, neither far from the end
// nor near it, and what is new is counted or added.
func TestBrowserAppends(t *testing.T) {
	s := newSite(t, page.Options{})
	var items []lineage.Item
	for i := range 300 {
		items = append(items, lineage.User(fmt.Sprintf("question %d", i)), lineage.Assistant(strings.Repeat("answer ", 1+i%40)))
	}
	thread, main := s.thread(lineage.ThreadOptions{}, items...)
	b := s.tab()
	for _, at := range []struct{ name, query, scroll string }{
		{"far from the end", "?at=300", "scrollTo(0, 900)"},
		{"near the end", "", "scrollTo(0, document.documentElement.scrollHeight)"},
	} {
		open(b, s.url+"/t/"+thread.ID().String()+at.query)
		until(b, `document.querySelector("#live.on")`)
		// The windows at the edges load, which is no append.
		const loaded = `[...document.querySelectorAll(".edge")].every((e) => { const r = e.getBoundingClientRect(); return r.bottom < -600 || r.top > innerHeight + 600; })`
		until(b, loaded)
		b.Do(chromedp.Evaluate[chromedp.Void](at.scroll))
		until(b, loaded+` && (() => { const first = [...document.querySelectorAll(".m")].find((m) => m.getBoundingClientRect().bottom > 110); const was = window.__was; window.__was = first?.id + first?.getBoundingClientRect().top + document.querySelector(".win").dataset.to; return was === window.__was; })()`)
		b.Do(chromedp.Evaluate[chromedp.Void](`window.__first = [...document.querySelectorAll(".m")].find((m) => m.getBoundingClientRect().bottom > 110); window.__top = window.__first.getBoundingClientRect().top; window.__moved = 0;
			(function look() { if (!window.__first.isConnected) window.__first = document.getElementById(window.__first.id) ?? window.__first; window.__moved = Math.max(window.__moved, Math.abs(window.__first.getBoundingClientRect().top - window.__top)); requestAnimationFrame(look); })(); 0`))
		for i := range 100 {
			var more []lineage.Item
			for range 5 {
				more = append(more, lineage.Assistant(fmt.Sprintf("%s: appended %d", at.name, i)))
			}
			_, err := main.Extend(t.Context(), more...)
			require.NoError(t, err)
		}
		n, err := main.Len(t.Context())
		require.NoError(t, err)
		until(b, fmt.Sprintf(`document.querySelector(".conv").dataset.length === "%d"`, n))
		require.Zero(t, eval[float64](b, `window.__moved`), at.name)
		require.True(t, eval[bool](b, `window.__first.isConnected`), at.name)
		until(b, `document.querySelector("#new").hidden === (document.querySelector(".win").dataset.to === document.querySelector(".conv").dataset.length)`)
		require.LessOrEqual(t, eval[int](b, `document.querySelectorAll(".m").length`), 400)
	}
	require.Empty(t, b.Problems())
	require.Empty(t, s.own(b))
}

// A call that waits gets its result in place, and a message of another conversation changes nothing here.
func TestBrowserResultsArrive(t *testing.T) {
	s := newSite(t, page.Options{})
	call := mustJSON(map[string]any{"role": "assistant", "content": []any{map[string]any{"type": "tool_use", "id": "1", "name": "Bash", "input": map[string]any{"command": "make"}}}})
	result := mustJSON(map[string]any{"role": "user", "content": []any{map[string]any{"type": "tool_result", "tool_use_id": "1", "content": "built", "is_error": false}}})
	thread, main := s.thread(lineage.ThreadOptions{}, lineage.User("go"), lineage.Item{Role: "assistant", Body: call, Type: "application/json"})
	_, other := s.thread(lineage.ThreadOptions{}, lineage.User("go"))
	b := s.tab()
	open(b, s.url+"/t/"+thread.ID().String())
	until(b, `document.querySelector("#live.on") && document.querySelector(".call.pending")`)
	_, err := other.Extend(t.Context(), lineage.Assistant("elsewhere"))
	require.NoError(t, err)
	_, err = main.Extend(t.Context(), lineage.Item{Role: "user", Body: result, Type: "application/json"})
	require.NoError(t, err)
	until(b, `!document.querySelector(".call.pending") && document.querySelector(".call .out")?.textContent === "built"`)
	require.NotContains(t, eval[string](b, `document.body.textContent`), "elsewhere")
	require.Empty(t, b.Problems())
}

// The list changes in place, and does not change its order under the pointer or the focus.
func TestBrowserHomeIsLive(t *testing.T) {
	s := newSite(t, page.Options{})
	first, a := s.thread(lineage.ThreadOptions{Title: "first"}, lineage.User("one"))
	s.thread(lineage.ThreadOptions{Title: "second"}, lineage.User("two"))
	b := s.tab()
	open(b, s.url)
	until(b, `document.querySelector("#live.on")`)
	order := `[...document.querySelectorAll(".row .title")].map((t) => t.textContent).join()`
	require.Equal(t, "second,first", eval[string](b, order))
	b.Do(chromedp.Evaluate[chromedp.Void](`document.querySelector(".row .hit").focus()`))
	_, err := a.Extend(t.Context(), lineage.Assistant("the last words"))
	require.NoError(t, err)
	until(b, `document.querySelector("#list").textContent.includes("the last words") && !document.querySelector("#fresh").hidden`)
	require.Equal(t, "second,first", eval[string](b, order))
	b.Do(chromedp.Click(chromedp.CSS("#fresh")))
	until(b, order+` === "first,second"`)
	b.Do(chromedp.Evaluate[chromedp.Void](`document.activeElement.blur()`))
	require.NoError(t, first.Delete(t.Context()))
	require.Empty(t, b.Problems())
}

// Every control does its work, by keys and by clicks.
func TestBrowserControls(t *testing.T) {
	s := newSite(t, page.Options{})
	items := []lineage.Item{lineage.User("first prompt"), lineage.Assistant("an answer"), lineage.User("second prompt"), lineage.Assistant("```go\nfunc main() {}\n```")}
	thread, main := s.thread(lineage.ThreadOptions{Title: "Lisbon"}, items...)
	id := thread.ID().String()
	b := s.tab()
	key := func(keys string) { b.Do(chromedp.KeyEvent(keys)) }
	at := func() string { u, _ := url.Parse(browser.Get(b, chromedp.Location())); return u.Path }
	open(b, s.url)
	key("?")
	until(b, `document.querySelector("#keys").open`)
	b.Do(chromedp.Click(chromedp.CSS("#keys button")))
	key("j")
	key("\r")
	until(b, `document.body.dataset.view === "conversation"`)
	require.Equal(t, "/t/"+id, at())
	until(b, `document.querySelector(".k-kd, .k-k")`) // code is highlighted
	b.Do(chromedp.Evaluate[chromedp.Void](`document.querySelector("#m1").focus()`))
	key("n")
	require.Equal(t, "m3", eval[string](b, `document.activeElement.id`))
	key("p")
	require.Equal(t, "m1", eval[string](b, `document.activeElement.id`))
	key("x")
	until(b, `document.querySelector("#exact").open && document.querySelector("#exact pre").textContent === "first prompt"`)
	b.Do(chromedp.Click(chromedp.CSS("#exact button")))
	b.Do(chromedp.Click(chromedp.CSS(".acts summary")), chromedp.SendKeys(chromedp.CSS(".acts form[action$=fork] [name=name]"), "other"),
		chromedp.Evaluate[chromedp.Void](`document.querySelector(".acts form[action$=fork] [name=at]").value = 2`), chromedp.Click(chromedp.CSS(".acts form[action$=fork] button")))
	until(b, `document.querySelector(".did")?.textContent.includes("other")`)
	require.Equal(t, 2, eval[int](b, `document.querySelectorAll(".m").length`))
	branch, err := thread.Branch(t.Context(), "other")
	require.NoError(t, err)
	c, err := s.store.Context(t.Context(), branch.Context)
	require.NoError(t, err)
	_, err = c.Extend(t.Context(), lineage.User("elsewhere"))
	require.NoError(t, err)
	key("gg")
	until(b, `document.body.dataset.view === "graph"`)
	require.Equal(t, 4, eval[int](b, `document.querySelectorAll(".node").length`))
	b.Do(chromedp.Evaluate[chromedp.Void](`const picks = [...document.querySelectorAll(".pick")].slice(-2); for (const p of picks) p.click(); 0`))
	b.Do(chromedp.Click(chromedp.CSS(".compare button")))
	until(b, `document.body.dataset.view === "sides"`)
	require.Contains(t, eval[string](b, `document.querySelector(".common").textContent`), "2 messages in common")
	key("j")
	key("x")
	until(b, `document.querySelector("#exact").open && document.querySelector("#exact pre").textContent === "first prompt"`)
	b.Do(chromedp.Click(chromedp.CSS("#exact button")))
	key("gh")
	until(b, `document.body.dataset.view === "home"`)
	key("/")
	b.Do(chromedp.SendKeys(chromedp.CSS("#q"), "second\r"))
	until(b, `document.body.dataset.view === "search" && document.querySelector("mark")`)
	types := func(query string) {
		run(b, `{ const q = document.querySelector("#q"); q.value = `+string(mustJSON(query))+`; q.dispatchEvent(new Event("input")); }`)
	}
	types("elsewhere after:20") // before the rest of a date
	until(b, `document.querySelector("#results [role=alert]") && !document.querySelector(".hits .hit")`)
	types("elsewhere after:2020")
	until(b, `document.querySelector("mark")?.textContent === "elsewhere" && location.search === "?q=elsewhere%20after%3A2020"`)
	b.Do(chromedp.Click(chromedp.CSS(".hits .hit")))
	until(b, `document.body.dataset.view === "conversation" && document.querySelector(".m.at")?.textContent.includes("elsewhere")`)
	b.Do(chromedp.Click(chromedp.CSS(".acts summary")), chromedp.Click(chromedp.CSS(".acts .danger")))
	until(b, `document.body.dataset.view === "delete"`)
	b.Do(chromedp.Click(chromedp.CSS(".ask .danger")))
	until(b, `document.body.dataset.view === "home" && !document.querySelector(".row")`)
	_, err = main.Len(t.Context())
	require.ErrorIs(t, err, lineage.ErrNotFound)
	for _, problem := range b.Problems() {
		require.Contains(t, problem, "after%3A20", "only half a query fails")
	}
	require.Empty(t, s.own(b))
}

// All of a long prompt is shown by a key, and folded by the same.
func TestBrowserLongPrompts(t *testing.T) {
	s := newSite(t, page.Options{})
	thread, _ := s.thread(lineage.ThreadOptions{}, lineage.User(strings.Repeat("a line\n", 200)))
	b := s.tab()
	open(b, s.url+"/t/"+thread.ID().String())
	height := `document.querySelector(".text.long").clientHeight`
	until(b, `document.querySelector(".text.long")`)
	folded := eval[int](b, height)
	b.Do(chromedp.KeyEvent("o"))
	require.Greater(t, eval[int](b, height), 2*folded)
	b.Do(chromedp.KeyEvent("o"))
	require.Equal(t, folded, eval[int](b, height))
}
