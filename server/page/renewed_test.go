package page_test

import (
	"context"
	"fmt"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/browser"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/server"
	"github.com/lineage-store/lineage/server/access"
	"github.com/lineage-store/lineage/server/page"
)

// Content that is erased leaves every open view: the list, a conversation, however far above, a subagent and a message that
// are open in it, the graph, histories side by side, and what a search found.
func TestBrowserErased(t *testing.T) {
	s := newSite(t, page.Options{})
	thread, main := s.thread(lineage.ThreadOptions{}, lineage.User("the secret prompt"), lineage.Assistant("a secret answer"))
	subagent, err := main.Fork(t.Context(), lineage.ForkOptions{Metadata: []byte(`{"made_by":"subagent"}`)})
	require.NoError(t, err)
	_, err = subagent.Extend(t.Context(), lineage.User("a secret task"))
	require.NoError(t, err)
	for range 3 {
		_, err := main.Extend(t.Context(), lineage.User("another question"), lineage.Assistant("another answer"))
		require.NoError(t, err)
	}
	tip, err := main.Tip(t.Context())
	require.NoError(t, err)
	id := thread.ID().String()
	list := s.tab()
	until(list, live+` && document.querySelector("#list").textContent.includes("secret")`)
	views := map[*browser.Tab]string{list: "#list"}
	view := func(path, part string) *browser.Tab {
		tab := list.Tab()
		open(tab, s.url+path)
		until(tab, live+` && document.querySelector("`+part+`").textContent.includes("secret")`)
		views[tab] = part
		return tab
	}
	conversation := view("/t/"+id, "main")
	view("/t/"+id+"/graph", "main")
	view("/t/"+id+"/sides?a="+url.QueryEscape(s.first(main).String())+"&b="+url.QueryEscape(tip.String()), "main")
	view("/search?q=secret", "#results")
	run(conversation, `document.querySelector("details.inside").open = true`)
	until(conversation, `document.querySelector(".insider")?.textContent.includes("a secret task")`)
	run(conversation, `exact(document.querySelector("#m1"))`)
	until(conversation, `document.querySelector("#exact").open && document.querySelector("#exact pre").textContent.includes("secret")`)
	_, err = main.Extend(t.Context(), lineage.User("the last question"))
	require.NoError(t, err)
	until(conversation, `document.querySelector("#history").textContent.includes("the last question")`)
	for entry, err := range subagent.Entries(t.Context(), lineage.Window{}) {
		require.NoError(t, err)
		for _, content := range entry.Contents() {
			require.NoError(t, s.store.Erase(t.Context(), content))
		}
	}
	for tab, part := range views {
		until(tab, `document.querySelector("`+part+`") && !document.querySelector("`+part+`").textContent.includes("secret")`)
	}
	until(conversation, `!document.title.includes("secret") && document.querySelector("#exact").open && !document.querySelector("#exact pre").textContent.includes("secret")`)
	require.True(t, eval[bool](conversation, `document.querySelector("details.inside").open`))
}

// An open conversation gets its new title, also in the form that renames it, unless somebody is entering another one there.
func TestBrowserTitleChanges(t *testing.T) {
	s := newSite(t, page.Options{})
	thread, _ := s.thread(lineage.ThreadOptions{}, lineage.User("the first prompt"))
	b := s.tab()
	open(b, s.url+"/t/"+thread.ID().String())
	until(b, live)
	rename := func(title string) {
		require.NoError(t, thread.Update(t.Context(), func(info *lineage.ThreadInfo) error { info.Title = title; return nil }))
		until(b, `document.querySelector("h1").textContent === "`+title+`" && document.title === "`+title+` · Lineage"`)
	}
	const input = `document.querySelector(".acts [name=title]")`
	require.Empty(t, eval[string](b, input+`.value`))
	rename("Lisbon")
	require.Equal(t, "Lisbon", eval[string](b, input+`.value`))
	run(b, input+`.value = "Porto"`)
	rename("Faro")
	require.Equal(t, "Porto", eval[string](b, input+`.value`))
	run(b, `document.querySelector(".acts").open = true`)
	b.Do(chromedp.Click(chromedp.CSS(".acts form[action$=rename] button")))
	until(b, `document.querySelector("h1").textContent === "Nothing was done"`)
}

// Costs that are computed after a change arrive in the list, and a page at rest asks for nothing more. The usage changes
// with the store.
func TestBrowserCostsArrive(t *testing.T) {
	var pending atomic.Bool
	var cost atomic.Value
	cost.Store("$1.00")
	s := newSite(t, page.Options{
		Cost:         func(lineage.ThreadID) string { return cost.Load().(string) },
		CostsPending: func(context.Context) bool { return pending.Load() },
	})
	thread, main := s.thread(lineage.ThreadOptions{}, lineage.User("one"))
	pending.Store(true)
	b := s.tab()
	conversation := b.Tab()
	open(conversation, s.url+"/t/"+thread.ID().String())
	until(conversation, `document.querySelector(".headline .cost")?.textContent === "$1.00"`)
	usage := b.Tab()
	open(usage, s.url+"/usage")
	until(usage, live)
	until(b, `document.querySelector(".cost")?.textContent === "$1.00"`)
	cost.Store("$2.00")
	pending.Store(false)
	until(b, `document.querySelector(".cost").textContent === "$2.00"`)
	until(conversation, `document.querySelector(".headline .cost").textContent === "$2.00"`)
	_, err := main.Extend(t.Context(), lineage.Item{Role: "assistant", Type: "application/json",
		Body: []byte(`{"id":"m","model":"claude-sonnet-4-5","role":"assistant","content":"a","usage":{"input_tokens":100000,"output_tokens":0}}`)})
	require.NoError(t, err)
	until(usage, `document.querySelector("main").textContent.includes("$0.30")`)
	require.Empty(t, b.Problems())
}

// A page whose session has ended with the server says so, although nothing happens in it.
func TestBrowserSignedOut(t *testing.T) {
	s := newSite(t, page.Options{})
	b := s.tab()
	until(b, live)
	listen := s.server.Addr().String()
	require.NoError(t, s.server.Close(t.Context()))
	until(b, `document.querySelector("#live").textContent !== "live"`)
	p, err := page.New(page.Options{Store: s.store})
	require.NoError(t, err)
	s.server, err = server.Open(t.Context(), server.Options{Store: s.store, Access: access.Open(t.TempDir(), s.store.ID()), Routes: p.Routes(), Listen: listen, Limits: patient})
	require.NoError(t, err)
	until(b, `document.querySelector("#live").textContent === "signed out" && document.querySelector("#live").title.includes("lineage serve --link")`)
}

// What could not be loaded because the network was away is loaded when it is back, without another event.
func TestBrowserTriesAgain(t *testing.T) {
	s := newSite(t, page.Options{})
	thread, main := s.thread(lineage.ThreadOptions{}, lineage.User("one"))
	b := s.tab()
	open(b, s.url+"/t/"+thread.ID().String())
	until(b, live)
	run(b, `window.__fetch = fetch; window.__lost = 0; window.fetch = async () => { window.__lost++; throw new TypeError("offline"); }`)
	_, err := main.Extend(t.Context(), lineage.Assistant("two"))
	require.NoError(t, err)
	until(b, `window.__lost > 0`)
	b.Do(chromedp.KeyEvent("x"))
	until(b, `document.querySelector("#live").textContent.includes("did not answer") && !document.querySelector("#exact").open`)
	run(b, `window.fetch = window.__fetch`)
	until(b, `document.querySelector("#history").textContent.includes("two")`)
	require.Empty(t, b.Problems())
}

// While loading fails, one attempt waits, however many events there were.
func TestBrowserTriesAgainOnce(t *testing.T) {
	s := newSite(t, page.Options{})
	b := s.tab()
	until(b, live)
	run(b, `window.__waiting = new Set();
		const set = setTimeout, clear = clearTimeout;
		window.setTimeout = (does, ms) => { const id = set(() => { __waiting.delete(id); does(); }, ms); if (ms >= 2000) __waiting.add(id); return id; };
		window.clearTimeout = (id) => { __waiting.delete(id); clear(id); };
		window.__tries = 0;
		window.__event = soon(1, async () => { window.__tries++; throw new TypeError("offline"); });`)
	for n := range 5 {
		run(b, `window.__event()`)
		until(b, fmt.Sprintf(`window.__tries > %d`, n))
	}
	require.Equal(t, 1, eval[int](b, `window.__waiting.size`))
}

// After content was erased, the list is read again as far as it is shown, although its rows moved.
func TestBrowserErasedInLongList(t *testing.T) {
	s := newSite(t, page.Options{})
	var last *lineage.Context
	for n := range 700 {
		_, c := s.thread(lineage.ThreadOptions{SourceID: fmt.Sprint(n)}, lineage.User(fmt.Sprintf("secret %03d", n)))
		if n == 10 {
			last = c
		}
	}
	b := s.tab()
	until(b, live)
	_, err := last.Extend(t.Context(), lineage.User("another question"))
	require.NoError(t, err)
	until(b, `document.querySelector("#list .row a").textContent.includes("secret 010")`)
	run(b, `window.__read = 0; const read = fetch; window.fetch = (...all) => { window.__read++; return read(...all); }`)
	for entry, err := range last.Entries(t.Context(), lineage.Window{}) {
		require.NoError(t, err)
		for _, content := range entry.Contents() {
			require.NoError(t, s.store.Erase(t.Context(), content))
		}
	}
	until(b, `!document.querySelector("#list").textContent.includes("secret 010")`)
	time.Sleep(time.Second)
	rows := eval[int](b, `document.querySelectorAll("#list .row").length`)
	require.Less(t, eval[int](b, `window.__read`), 8, "%d rows", rows)
}

// A subagent that was shown and is closed is loaded again when it is opened after content was erased.
func TestBrowserErasedInClosedSubagent(t *testing.T) {
	s := newSite(t, page.Options{})
	thread, main := s.thread(lineage.ThreadOptions{}, lineage.User("one"))
	subagent, err := main.Fork(t.Context(), lineage.ForkOptions{Metadata: []byte(`{"made_by":"subagent"}`)})
	require.NoError(t, err)
	_, err = subagent.Extend(t.Context(), lineage.User("a task"), lineage.Assistant("a secret answer"))
	require.NoError(t, err)
	b := s.tab()
	open(b, s.url+"/t/"+thread.ID().String())
	until(b, live)
	run(b, `document.querySelector("details.inside").open = true`)
	until(b, `document.querySelector(".insider")?.textContent.includes("a secret answer")`)
	run(b, `document.querySelector("details.inside").open = false`)
	for entry, err := range subagent.Entries(t.Context(), lineage.Window{Last: 1}) {
		require.NoError(t, err)
		for _, content := range entry.Contents() {
			require.NoError(t, s.store.Erase(t.Context(), content))
		}
	}
	until(b, `!document.querySelector("main").textContent.includes("secret")`)
	run(b, `document.querySelector("details.inside").open = true`)
	until(b, `document.querySelector(".insider") && !document.querySelector(".insider").textContent.includes("secret")`)
	require.Empty(t, b.Problems())
}
