package page_test

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/server/page"
)

// All prompts of a history are listed beside it, not only those on the screen, and lead to their messages. What is erased
// leaves the list.
func TestBrowserPromptsOfTheWholeHistory(t *testing.T) {
	s := newSite(t, page.Options{})
	const rounds = 200
	var items []lineage.Item
	for i := range rounds {
		items = append(items, lineage.User(fmt.Sprintf("question **%d** <b>", i+1)), lineage.Assistant("an answer"))
	}
	thread, main := s.thread(lineage.ThreadOptions{}, items...)
	tip, err := main.Tip(t.Context())
	require.NoError(t, err)
	tenth, err := s.store.At(t.Context(), tip, 10)
	require.NoError(t, err)
	other, err := main.Fork(t.Context(), lineage.ForkOptions{At: tenth})
	require.NoError(t, err)
	require.NoError(t, thread.NameBranch(t.Context(), "other", other))
	_, err = other.Extend(t.Context(), lineage.User("another question"))
	require.NoError(t, err)

	b := s.tab()
	b.Do(chromedp.EmulateViewport(1200, 700)) // where there is room for the list
	open(b, s.url+"/t/"+thread.ID().String())
	until(b, live)
	const texts = `[...document.querySelectorAll("#prompts a")].map((a) => a.textContent)`
	until(b, fmt.Sprintf(`%s.length === %d`, texts, rounds))
	require.Equal(t, "question 1 <b>", eval[string](b, texts+`[0]`))
	require.Equal(t, fmt.Sprintf("question %d <b>", rounds), eval[string](b, texts+`.at(-1)`))
	require.Empty(t, eval[string](b, `document.querySelector("#m1")?.id ?? ""`))
	run(b, `document.querySelector("#prompts a").click(); 0`)
	until(b, `document.querySelector("#m1")?.getBoundingClientRect().top > 0`)
	until(b, `document.querySelector("#prompts a.here")?.textContent === "question 1 <b>"`)
	require.Equal(t, rounds, eval[int](b, texts+`.length`))

	_, err = main.Extend(t.Context(), lineage.User("the last one"))
	require.NoError(t, err)
	until(b, `document.querySelector("#new")?.textContent === "1 new"`)
	until(b, texts+`.at(-1) === "the last one"`) // also while the screen is elsewhere
	run(b, `document.querySelector("#prompts a[data-pos='399']").click(); 0`)
	until(b, texts+`.at(-1) === "the last one"`)

	// Only the list has the second question now.
	for e, err := range s.store.History(t.Context(), tip, lineage.Window{From: 3, To: 3}) {
		require.NoError(t, err)
		for _, content := range e.Contents() {
			require.NoError(t, s.store.Erase(t.Context(), content))
		}
	}
	until(b, `!`+texts+`.includes("question 2 <b>")`)

	open(b, s.url+"/t/"+thread.ID().String()+"?in=other")
	until(b, fmt.Sprintf(`%s.length === 5 && %[1]s.at(-1) === "another question"`, texts))
	require.Empty(t, b.Problems())
}

// A list of prompts that does not have the first ones says so.
func TestBrowserEarlierPrompts(t *testing.T) {
	s := newSite(t, page.Options{})
	const listed = 1000
	var items []lineage.Item
	for i := range listed {
		items = append(items, lineage.User(fmt.Sprint("question ", i+1)))
	}
	thread, main := s.thread(lineage.ThreadOptions{}, items...)
	b := s.tab()
	b.Do(chromedp.EmulateViewport(1200, 700))
	open(b, s.url+"/t/"+thread.ID().String())
	until(b, live)
	const texts = `[...document.querySelectorAll("#prompts li")].map((li) => li.textContent)`
	until(b, fmt.Sprintf(`%s.length === %d && %[1]s[0] === "question 1"`, texts, listed))

	_, err := main.Extend(t.Context(), lineage.User("the last one"))
	require.NoError(t, err)
	open(b, s.url+"/t/"+thread.ID().String())
	until(b, live)
	until(b, texts+`[0] === "Earlier prompts are not listed."`)
	require.Equal(t, "question 2", eval[string](b, texts+`[1]`))
	require.Equal(t, "the last one", eval[string](b, texts+`.at(-1)`))
	require.Empty(t, b.Problems())
}
