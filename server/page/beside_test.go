package page_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend/backendtest"
	"github.com/lineage-store/lineage/lineage/lineagetest"
	"github.com/lineage-store/lineage/server/page"
)

// besideIn returns the graph beside a conversation in a page, row by row.
func besideIn(body string) []string {
	_, side, _ := strings.Cut(body, `<section id="beside"`)
	side, _, _ = strings.Cut(side, "</section>")
	return strings.Split(side, "<li ")[1:]
}

// The graph of a thread is beside each of its histories, whose rows are marked. A history alone has none, and a thread of a
// thousand branches has a part of it.
func TestBeside(t *testing.T) {
	s := newSite(t, page.Options{})
	thread, main := s.thread(lineage.ThreadOptions{}, lineage.User("one"), lineage.Assistant("two"), lineage.User("three"))
	s.thread(lineage.ThreadOptions{}, lineage.User("one"), lineage.Assistant("two"), lineage.User("three"))
	at := "/t/" + thread.ID().String()
	_, body := s.get(at)
	require.Contains(t, body, `<section id="beside" hidden>`)
	require.Empty(t, besideIn(body))

	other, err := thread.CreateBranch(t.Context(), hostile[4], lineage.BranchOptions{At: s.first(main)})
	require.NoError(t, err)
	_, err = other.Extend(t.Context(), lineage.Assistant("another "+hostile[0]))
	require.NoError(t, err)
	on := func(path string) (positions string) {
		t.Helper()
		status, body := s.get(path)
		require.Equal(t, 200, status)
		require.NotContains(t, body, "<img src=x")
		for _, row := range besideIn(body) {
			var n int
			if strings.HasPrefix(row, `class="node on"`) {
				_, err := fmt.Sscanf(row[strings.Index(row, "data-pos="):], `data-pos="%d"`, &n)
				require.NoError(t, err)
				positions += fmt.Sprint(n, " ")
			}
		}
		return positions
	}
	in := "?in=" + other.ID().String()
	require.Equal(t, "1 3 ", on(at))
	require.Equal(t, "1 2 ", on(at+in))
	require.Equal(t, "1 2 ", on(at+"/graph"+in+"&part=beside"))
	status, _ := s.get(at + "/graph?part=beside&at=x")
	require.Equal(t, 400, status)
	status, _ = s.get(at + "/graph?part=beside&in=" + url.QueryEscape(hostile[0]))
	require.Equal(t, 404, status)

	for i := range 200 {
		b, err := thread.CreateBranch(t.Context(), fmt.Sprint("branch ", i), lineage.BranchOptions{From: main})
		require.NoError(t, err)
		_, err = b.Extend(t.Context(), lineage.User(fmt.Sprint("elsewhere ", i)))
		require.NoError(t, err)
	}
	_, body = s.get(at)
	require.Len(t, besideIn(body), 10, "a lane each, and the others are counted")
	require.Contains(t, body, "+193")
	for i := range 60 {
		_, err := main.Extend(t.Context(), lineage.User("more"))
		require.NoError(t, err)
		_, err = thread.SetCheckpoint(t.Context(), fmt.Sprint("mark ", i), lineage.CheckpointOptions{})
		require.NoError(t, err)
	}
	_, body = s.get(at + "?at=60")
	require.Len(t, besideIn(body), 40)
	require.Contains(t, body, "mark 56", "it is around the position")
}

// In a thread with several beginnings, the graph beside a conversation is around what is on the screen.
func TestBesideOfBeginnings(t *testing.T) {
	s := newSite(t, page.Options{})
	var items []lineage.Item
	for i := range 30 {
		items = append(items, lineage.User(fmt.Sprint("message ", i+1)))
	}
	thread, main := s.thread(lineage.ThreadOptions{}, items...)
	tip, err := main.Tip(t.Context())
	require.NoError(t, err)
	for i := range 10 {
		ref, err := s.store.At(t.Context(), tip, uint64(2*i+2))
		require.NoError(t, err)
		_, err = thread.SetCheckpoint(t.Context(), fmt.Sprint("mark ", i), lineage.CheckpointOptions{At: ref})
		require.NoError(t, err)
	}
	var last *lineage.Context
	for i := range 25 {
		last, err = thread.CreateBranch(t.Context(), fmt.Sprint("again ", i), lineage.BranchOptions{Empty: true})
		require.NoError(t, err)
		_, err = last.Extend(t.Context(), lineage.User(fmt.Sprint("another one ", i)), lineage.Assistant("two"))
		require.NoError(t, err)
	}
	at := "/t/" + thread.ID().String()
	for query, want := range map[string]string{"?at=29": "mark 9", "?at=2": "mark 0", "": "message 30", "?in=" + last.ID().String(): "another one"} {
		_, body := s.get(at + query)
		on := false
		for _, row := range besideIn(body) {
			on = on || strings.HasPrefix(row, `class="node on"`) && strings.Contains(row, want)
		}
		require.True(t, on, query)
	}
}

// The graph says which of several a message is, as the conversation does, and which is a copy that a merge made.
func TestGraphSaysRetriesAndMerges(t *testing.T) {
	s := newSite(t, page.Options{})
	thread, main := s.thread(lineage.ThreadOptions{}, lineage.User("one"), lineage.Assistant("first answer"))
	other, err := thread.CreateBranch(t.Context(), "other", lineage.BranchOptions{At: s.first(main)})
	require.NoError(t, err)
	_, err = other.Extend(t.Context(), lineage.Assistant("second answer"), lineage.User("more"))
	require.NoError(t, err)
	row := func(text string) string {
		t.Helper()
		_, body := s.get("/t/" + thread.ID().String() + "/graph")
		for _, row := range strings.Split(body, "<li ")[1:] {
			if row, _, _ = strings.Cut(row, "</li>"); strings.Contains(row, text) {
				return row
			}
		}
		t.Fatalf("no row says %q", text)
		return ""
	}
	require.Contains(t, row("first answer"), "1 of 2")
	require.Contains(t, row("second answer"), "2 of 2")
	require.NotContains(t, row(">more<"), " of ")
	require.NotContains(t, row(">more<"), ">merged<")
	_, err = main.Merge(t.Context(), other)
	require.NoError(t, err)
	_, body := s.get("/t/" + thread.ID().String() + "/graph")
	require.Equal(t, 1, strings.Count(body, ">merged<"))
	require.Equal(t, 1, strings.Count(body, `class="lane merge`), "from the message to its copy")

	// Of a message that is not there any more, the copy remains, without a line.
	require.NoError(t, thread.DeleteBranch(t.Context(), "other"))
	_, err = s.store.Collect(t.Context(), lineage.CollectOptions{KeepReflog: -1, KeepUnused: -1})
	require.NoError(t, err)
	_, body = s.get("/t/" + thread.ID().String() + "/graph")
	require.Equal(t, 1, strings.Count(body, ">merged<"))
	require.NotContains(t, body, `class="lane merge`)
}

// Of more messages than are numbered, the graph and the conversation read none.
func TestGraphOfManyFollowers(t *testing.T) {
	counting := backendtest.NewCounting(write.Of(lineagetest.New(t, lineage.Options{})).Engine())
	s := newSite(t, page.Options{Store: lineage.New(counting)})
	thread, main := s.thread(lineage.ThreadOptions{}, lineage.User("one"), lineage.Assistant("two"))
	n := 1
	more := func(until int) {
		t.Helper()
		for ; n < until; n++ {
			b, err := thread.CreateBranch(t.Context(), fmt.Sprint("branch ", n), lineage.BranchOptions{At: s.first(main)})
			require.NoError(t, err)
			_, err = b.Extend(t.Context(), lineage.Assistant("another"))
			require.NoError(t, err)
		}
	}
	cost := func() int64 {
		t.Helper()
		path := "/t/" + thread.ID().String() + "/graph"
		s.get(path) // the graph is read
		return counting.Cost(func() { s.get(path) })
	}
	more(190)
	numbered := cost()
	more(210)
	require.Less(t, cost(), numbered/4)
}

// The graph beside a conversation follows other branches, leads to messages in place, and the whole one is gone through by
// arrows. On a phone the page says what happened.
func TestBrowserBeside(t *testing.T) {
	s := newSite(t, page.Options{})
	var items []lineage.Item
	for i := range 150 {
		items = append(items, lineage.User(fmt.Sprint("question ", i)), lineage.Assistant("answer"))
	}
	thread, main := s.thread(lineage.ThreadOptions{}, items...)
	other, err := thread.CreateBranch(t.Context(), "other", lineage.BranchOptions{At: s.first(main)})
	require.NoError(t, err)
	_, err = other.Extend(t.Context(), lineage.Assistant("elsewhere"))
	require.NoError(t, err)
	b := s.tab()
	b.Do(chromedp.EmulateViewport(1300, 800))
	at := "/t/" + thread.ID().String()
	open(b, s.url+at)
	until(b, live+` && document.querySelector("#beside .node.here .said")`)
	require.Contains(t, eval[string](b, `document.querySelector("#beside .node.here").dataset.pos`), "1")
	_, err = other.Extend(t.Context(), lineage.User("and on"))
	require.NoError(t, err)
	until(b, `document.querySelector("#beside").textContent.includes("and on")`)
	run(b, `window.__same = true`)
	b.Do(chromedp.Click(chromedp.CSS(`#beside .node[data-pos="1"] a`)))
	until(b, `document.querySelector(".win").dataset.from === "1" && window.__same`)

	open(b, s.url+at+"/graph")
	until(b, live)
	for range 2 {
		b.Do(chromedp.KeyEvent(kb.ArrowDown)) // arrow down
	}
	b.Do(chromedp.KeyEvent(kb.ArrowUp)) // arrow up
	require.Equal(t, 0, eval[int](b, `[...document.querySelectorAll(".nodes .hit")].indexOf(document.activeElement)`))

	b.Do(chromedp.EmulateViewport(360, 740))
	open(b, s.url+at)
	until(b, live)
	require.NoError(t, thread.Delete(t.Context()))
	until(b, `document.querySelector("#live").textContent === "deleted"`)
	require.True(t, eval[bool](b, `(() => { const r = document.querySelector("#live").getBoundingClientRect(); return r.width > 20 && r.height > 8 && r.right <= 360; })()`))
	for _, p := range b.Problems() {
		require.Contains(t, p, "404")
	}
}
