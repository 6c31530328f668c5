package page_test

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/browser"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/server/page"
)

func run(b *browser.Tab, script string) { b.Do(chromedp.Evaluate[chromedp.Void](script + "; 0")) }

const live = `document.querySelector("#live.on")`

// A branch that goes back and grows again shows its new history, and nothing of the one before. While somebody enters
// something, the page is not loaded again, but says so.
func TestBrowserMovedBranch(t *testing.T) {
	s := newSite(t, page.Options{})
	thread, main := s.thread(lineage.ThreadOptions{}, lineage.User("one"), lineage.Assistant("old two"), lineage.User("old three"))
	other := s.first(main)
	b := s.tab()
	open(b, s.url+"/t/"+thread.ID().String())
	until(b, live)
	moves := func(text string) {
		require.NoError(t, main.MoveTo(t.Context(), other, "rewind"))
		_, err := main.Extend(t.Context(), lineage.Assistant(text+" two"), lineage.User(text+" three"), lineage.Assistant(text+" four"), lineage.User(text+" five"))
		require.NoError(t, err)
	}
	moves("new")
	until(b, `document.querySelectorAll(".m").length === 5 && document.body.textContent.includes("new five")`)
	require.NotContains(t, eval[string](b, `document.querySelector("#history").textContent`), "old")
	until(b, live)
	b.Do(chromedp.Click(chromedp.CSS(".acts summary")))
	run(b, `document.querySelector(".acts [name=title]").focus()`)
	moves("newest")
	until(b, `document.querySelector("#live").textContent === "moved" && !document.querySelector("#new").hidden`)
	require.NotContains(t, eval[string](b, `document.querySelector("#history").textContent`), "newest", "there is no mixture")
	b.Do(chromedp.Click(chromedp.CSS("#new")))
	until(b, `document.querySelector("#history").textContent.includes("newest five")`)
	until(b, live)

	// Another branch becomes the active one.
	_, err := thread.CreateBranch(t.Context(), "second", lineage.BranchOptions{At: other, Switch: true})
	require.NoError(t, err)
	until(b, `document.querySelectorAll(".m").length === 1`)
	require.Empty(t, b.Problems())
}

// first returns the first message of a context.
func (s *site) first(c *lineage.Context) lineage.SpanRef {
	s.t.Helper()
	tip, err := c.Tip(s.t.Context())
	require.NoError(s.t, err)
	ref, err := s.store.At(s.t.Context(), tip, 1)
	require.NoError(s.t, err)
	return ref
}

// A thread that is deleted leaves the list, and an open conversation says so. The first one takes the place of the note
// that there is none.
func TestBrowserDeleted(t *testing.T) {
	s := newSite(t, page.Options{})
	gone, _ := s.thread(lineage.ThreadOptions{Title: "gone"}, lineage.User("one"))
	b := s.tab()
	until(b, live+` && document.querySelectorAll(".row").length === 1`)
	reader := b.Tab()
	open(reader, s.url+"/t/"+gone.ID().String())
	until(reader, live)
	require.NoError(t, gone.Delete(t.Context()))
	until(b, `!document.querySelector(".row") && document.querySelector(".empty")`)
	until(reader, `document.querySelector("#live").textContent === "deleted"`)
	s.thread(lineage.ThreadOptions{Title: "new"}, lineage.User("two"))
	until(b, `document.querySelector(".row .title")?.textContent === "new" && !document.querySelector(".empty")`)
	for _, problem := range reader.Problems() {
		require.Contains(t, problem, "404")
	}
}

// A second tab learns from the first that the page is live, looks at what it missed, and takes over when the first is
// left.
func TestBrowserTabs(t *testing.T) {
	s := newSite(t, page.Options{})
	thread, main := s.thread(lineage.ThreadOptions{}, lineage.User("one"))
	b := s.tab()
	until(b, live)
	second := b.Tab()
	open(second, s.url+"/t/"+thread.ID().String())
	until(second, live)
	until(second, `performance.getEntriesByType("resource").some((r) => r.name.includes("part="))`)
	streams := func(b *browser.Tab) (n int) {
		for _, r := range b.Requests() {
			if strings.HasSuffix(r, "/v1/events") {
				n++
			}
		}
		return n
	}
	require.Equal(t, []int{1, 0}, []int{streams(b), streams(second)})
	b.Do(chromedp.Navigate("about:blank"))
	for streams(second) == 0 && second.Err() == nil {
		until(second, "true")
	}
	until(second, live)
	_, err := main.Extend(t.Context(), lineage.Assistant("after the first tab"))
	require.NoError(t, err)
	until(second, `document.body.textContent.includes("after the first tab")`)
	require.Empty(t, second.Problems())
}

// What a reader does with a message stays when others arrive, and a row of the list is the same one until it changes.
func TestBrowserKeepsWhatIsOpen(t *testing.T) {
	s := newSite(t, page.Options{})
	call := mustJSON(map[string]any{"role": "assistant", "content": []any{map[string]any{"type": "thinking", "thinking": "much"}, map[string]any{"type": "text", "text": "some words"}}})
	thread, main := s.thread(lineage.ThreadOptions{Title: "a"}, lineage.User("go"), lineage.Item{Role: "assistant", Body: call, Type: "application/json"})
	other, _ := s.thread(lineage.ThreadOptions{Title: "b"}, lineage.User("go"))
	b := s.tab()
	until(b, live)
	rows := `[...document.querySelectorAll(".row")]`
	run(b, `window.__rows = `+rows+`.map((r) => r.querySelector(".line1"))`)
	_, err := other.CreateBranch(t.Context(), "x", lineage.BranchOptions{})
	require.NoError(t, err)
	until(b, `!document.querySelector(".row .forks").hidden`)
	require.True(t, eval[bool](b, rows+`.every((r) => window.__rows.includes(r.querySelector(".line1")))`), "the same nodes")

	open(b, s.url+"/t/"+thread.ID().String())
	until(b, live)
	run(b, `window.__m = [...document.querySelectorAll(".m")].at(-1); window.__m.querySelector("details").open = true; window.__m.focus(); getSelection().selectAllChildren(window.__m.querySelector(".md"))`)
	_, err = main.Extend(t.Context(), lineage.User("more"))
	require.NoError(t, err)
	until(b, `document.body.textContent.includes("more")`)
	require.True(t, eval[bool](b, `window.__m.isConnected && document.activeElement === window.__m && window.__m.querySelector("details").open`))
	require.Equal(t, "some words", eval[string](b, `String(getSelection()).trim()`))
	require.Equal(t, "live", eval[string](b, `document.querySelector("#live").textContent`))
	b.Do(chromedp.KeyEvent("f"))
	until(b, `document.querySelector("#live").textContent === "following"`)
	_, err = main.Extend(t.Context(), lineage.User("even more"))
	require.NoError(t, err)
	until(b, `document.body.textContent.includes("even more")`)
	require.Equal(t, "following", eval[string](b, `document.querySelector("#live").textContent`))
	require.Empty(t, b.Problems())
}

// A graph is drawn again for its own thread only, and a filter that nothing has says so.
func TestBrowserGraphIsLive(t *testing.T) {
	s := newSite(t, page.Options{})
	thread, main := s.thread(lineage.ThreadOptions{}, lineage.User("one"), lineage.User("two"))
	_, other := s.thread(lineage.ThreadOptions{}, lineage.User("one"))
	b := s.tab()
	open(b, s.url+"/t/"+thread.ID().String()+"/graph?name=nobody")
	require.Contains(t, eval[string](b, `document.querySelector("[role=status].note").textContent`), "No branch")
	open(b, s.url+"/t/"+thread.ID().String()+"/graph")
	until(b, live+` && performance.getEntriesByType("resource").some((r) => r.name.includes("part="))`)
	asked := func() int { return strings.Count(strings.Join(b.Requests(), "\n"), "/graph?part=") }
	before := asked()
	run(b, `new BroadcastChannel("lineage-events").onmessage = (e) => { window.__heard ||= JSON.stringify(e.data).includes("`+other.ID().String()+`"); }`)
	_, err := other.Extend(t.Context(), lineage.User("elsewhere"))
	require.NoError(t, err)
	until(b, `window.__heard`)
	time.Sleep(700 * time.Millisecond) // longer than the page waits before it draws
	require.Equal(t, before, asked())
	_, err = thread.CreateBranch(t.Context(), "new", lineage.BranchOptions{At: s.first(main)})
	require.NoError(t, err)
	until(b, `document.querySelector(".graph").textContent.includes("new")`)
	require.Equal(t, before+1, asked())
	require.Empty(t, b.Problems())
}

// Every act is done by its control, in the browser and through the server.
func TestBrowserActs(t *testing.T) {
	s := newSite(t, page.Options{})
	thread, main := s.thread(lineage.ThreadOptions{Title: "was"}, lineage.User("one"), lineage.Assistant("two"), lineage.User("three"))
	require.NoError(t, main.MoveTo(t.Context(), s.first(main), "rewind"))
	b := s.tab()
	at := s.url + "/t/" + thread.ID().String()
	act := func(action string, fields map[string]string, done string) {
		t.Helper()
		open(b, at)
		until(b, live)
		form := ".acts form[action$=" + action + "]"
		run(b, `document.querySelector(".acts").open = true`)
		for name, value := range fields {
			run(b, `document.querySelector("`+form+` [name=`+name+`]").value = "`+value+`"`)
		}
		b.Do(chromedp.Click(chromedp.CSS(form + " button")))
		until(b, `document.querySelector(".did")?.textContent === "`+done+`"`)
	}
	act("rename", map[string]string{"title": "Lisbon"}, "Renamed")
	act("undo", nil, "Undone")
	until(b, `document.querySelectorAll(".m").length === 3`)
	act("checkpoint", map[string]string{"name": "mark", "at": "2"}, "Checkpoint mark set")
	act("fork", map[string]string{"name": "other", "at": "1"}, "Branch other continues here")
	info, err := thread.Info(t.Context())
	require.NoError(t, err)
	require.Equal(t, "Lisbon", info.Title)
	mark, err := thread.Checkpoint(t.Context(), "mark")
	require.NoError(t, err)
	tip, err := main.Tip(t.Context())
	require.NoError(t, err)
	second, err := s.store.At(t.Context(), tip, 2)
	require.NoError(t, err)
	require.Equal(t, second, mark.Span)
	other, err := thread.Branch(t.Context(), "other")
	require.NoError(t, err)
	require.Equal(t, s.first(main), other.Head)

	// Two tabs: what one has changed is not undone by the other, which has not seen it.
	branch, err := s.store.Context(t.Context(), other.Context)
	require.NoError(t, err)
	elsewhere, err := branch.Extend(t.Context(), lineage.Assistant("another two"))
	require.NoError(t, err)
	open(b, at)
	until(b, live+` && document.querySelectorAll(".m").length === 3`)
	run(b, `document.querySelector(".acts").open = true; document.querySelector(".acts [name=title]").focus()`)
	require.NoError(t, main.MoveTo(t.Context(), elsewhere[0], "elsewhere"))
	until(b, `document.querySelector("#live").textContent === "moved"`)
	b.Do(chromedp.Click(chromedp.CSS(".acts form[action$=undo] button")))
	until(b, `document.querySelector("h1").textContent === "Nothing was done" && document.body.textContent.includes("changed after this page")`)
	n, err := main.Len(t.Context())
	require.NoError(t, err)
	require.Equal(t, uint64(2), n)
	b.Do(chromedp.Navigate(at+"/delete"), chromedp.Click(chromedp.CSS(".ask .danger")))
	until(b, `document.body.dataset.view === "home" && !document.querySelector(".row")`)
	for _, problem := range b.Problems() {
		require.Contains(t, problem, "/undo", "only what was refused fails")
	}
}
