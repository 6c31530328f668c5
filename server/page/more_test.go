package page_test

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/server/page"
)

func failed(n int) []lineage.Item {
	all := call(n)
	all[1].Body = []byte(strings.Replace(string(all[1].Body), `"tool_use_id"`, `"is_error":true,"tool_use_id"`, 1))
	return all
}

// The map has the prompts, calls, failures and forks of the history that it is asked for, each where it is, in at most 1,000
// parts; and what is said in it is not in it.
func TestMap(t *testing.T) {
	s := newSite(t, page.Options{})
	items := []lineage.Item{lineage.User("go " + hostile[0])}
	items = append(append(items, call(1)...), failed(2)...)
	thread, main := s.thread(lineage.ThreadOptions{Title: hostile[0]}, append(items, lineage.Assistant("done"))...)
	twin, _ := s.thread(lineage.ThreadOptions{}, lineage.User("alone"))
	at := "/t/" + thread.ID().String()
	status, body := s.get(at + "/map?part")
	require.Equal(t, 200, status)
	require.Contains(t, body, `viewBox="0 0 19 6"`)
	require.Contains(t, body, `class="m-prompt" d="M4 0h11v1h-11z"`)
	require.Contains(t, body, `class="m-answer" d="M4 5h11v1h-11z"`)
	require.Contains(t, body, `class="m-failed" d="M15 4h4v1h-4z"`)
	require.NotContains(t, body, "m-fork")
	require.NotContains(t, body, "data-rest")
	require.NotContains(t, body, "script")

	tip, err := main.Tip(t.Context())
	require.NoError(t, err)
	third, err := s.store.At(t.Context(), tip, 3)
	require.NoError(t, err)
	other, err := thread.CreateBranch(t.Context(), "other", lineage.BranchOptions{At: third})
	require.NoError(t, err)
	_, err = other.Extend(t.Context(), lineage.User("elsewhere"))
	require.NoError(t, err)
	for _, in := range []string{"", "&in=" + other.ID().String(), "&in=" + tip.String()} {
		_, body = s.get(at + "/map?part" + in)
		require.Contains(t, body, `class="m-fork" d="M0 2h3v1h-3z"`, in)
	}
	_, body = s.get("/t/" + twin.ID().String() + "/map?part")
	require.Contains(t, body, `viewBox="0 0 19 1"`)
	for _, path := range []string{"/t/" + twin.ID().String() + "/map?in=" + tip.String(), "/t/" + twin.ID().String() + "/map?in=" + main.ID().String()} {
		status, _ = s.get(path)
		require.Equal(t, 404, status, "another thread's")
	}

	// 10,000 calls, and messages of megabytes.
	items = []lineage.Item{lineage.User(strings.Repeat("x", 10<<20))}
	for n := range 5000 {
		items = append(items, call(n)...)
	}
	thread, _ = s.thread(lineage.ThreadOptions{}, items...)
	var parts int
	for range 200 { // a request reads for a limited time
		_, body = s.get("/t/" + thread.ID().String() + "/map?part")
		if parts = strings.Count(body, "data-rest"); parts == 0 {
			break
		}
	}
	require.Zero(t, parts)
	require.Contains(t, body, `viewBox="0 0 19 1000"`)
	require.Contains(t, body, `class="m-prompt" d="M4 0h11v1h-11z"`)
	require.Less(t, len(body), 64<<10)
}

// From prompt to prompt, wherever in a history: results of tools are none, and where there is no other the message stays.
func TestPrompts(t *testing.T) {
	s := newSite(t, page.Options{})
	items := []lineage.Item{lineage.User("first")}
	for n := range 150 {
		items = append(items, call(n)...)
	}
	items = append(items, lineage.User("second"))
	for n := range 150 {
		items = append(items, call(n)...)
	}
	thread, _ := s.thread(lineage.ThreadOptions{}, items...)
	at := regexp.MustCompile(`data-from="(\d+)" data-to="(\d+)".* data-at="(\d+)"`)
	for _, c := range []struct {
		query      string
		want       uint64
		from, upTo int
	}{
		{"prompt=next&at=1", 302, 269, 368}, {"prompt=next&at=301", 302, 269, 368}, {"prompt=next&at=302", 302, 269, 368},
		{"prompt=previous&at=602", 302, 269, 368}, {"prompt=previous&at=302", 1, 1, 100}, {"prompt=previous&at=1", 1, 1, 100},
		{"prompt=next&at=18446744073709551", 18446744073709551, 0, 0},
	} {
		status, body := s.get("/t/" + thread.ID().String() + "?part&" + c.query)
		require.Equal(t, 200, status)
		found := at.FindStringSubmatch(body)
		require.NotNil(t, found, c.query)
		require.Equal(t, fmt.Sprint(c.want), found[3], c.query)
		if c.upTo > 0 {
			require.Equal(t, []string{fmt.Sprint(c.from), fmt.Sprint(c.upTo)}, found[1:3], c.query)
		}
	}
}

// A subagent is shown where it begins, by what it was asked, and has its own messages in place.
func TestSubagents(t *testing.T) {
	s := newSite(t, page.Options{})
	thread, main := s.thread(lineage.ThreadOptions{}, append([]lineage.Item{lineage.User("go")}, append(call(1), lineage.Assistant("two"), lineage.Assistant("three"))...)...)
	tip, err := main.Tip(t.Context())
	require.NoError(t, err)
	fourth, err := s.store.At(t.Context(), tip, 4)
	require.NoError(t, err)
	forked, err := main.Fork(t.Context(), lineage.ForkOptions{At: fourth, Metadata: []byte(`{"made_by":"subagent"}`)})
	require.NoError(t, err)
	_, err = forked.Extend(t.Context(), lineage.User(hostile[0]+" look"), lineage.Assistant("I looked"))
	require.NoError(t, err)
	// An agent says in the result of a call which subagent it was.
	empty, err := main.Fork(t.Context(), lineage.ForkOptions{Empty: true, Metadata: []byte(`{"aside":"agent end of 1"}`)})
	require.NoError(t, err)
	_, err = empty.Extend(t.Context(), lineage.User("find it"), lineage.Assistant("found"))
	require.NoError(t, err)
	at := "/t/" + thread.ID().String()
	_, body := s.get(at)
	details := regexp.MustCompile(`^[^>]* data-pos="(\d+)"(?s:.*)<details class="part inside" data-src="([^"]*)"><summary><b>Subagent</b> <span class="what"><bdi>([^<]*)</bdi></span><span class="count">(\d+)`)
	var inside [][]string
	for _, article := range strings.Split(body, "<article") {
		if found := details.FindStringSubmatch(article); found != nil {
			inside = append(inside, found)
		}
	}
	require.Len(t, inside, 2)
	require.Equal(t, []string{"2", "find it", "2"}, []string{inside[0][1], inside[0][3], inside[0][4]})
	require.Equal(t, []string{"4", "2"}, []string{inside[1][1], inside[1][4]})
	require.Contains(t, inside[1][3], "&lt;script&gt;")
	require.NotContains(t, body, "<script>document.title")
	for i, text := range []string{"found", "I looked"} {
		_, part := s.get(strings.ReplaceAll(inside[i][2], "&amp;", "&"))
		require.Contains(t, part, text)
		require.NotContains(t, part, ">go<", "only its own messages")
		require.Equal(t, 2, strings.Count(part, "<article"))
		require.NotContains(t, part, `id="m`, "its anchors are its own")
	}
	_, body = s.get(at + "?in=" + forked.ID().String())
	require.Equal(t, 1, strings.Count(body, `class="part inside"`), "not itself")
}

// Where else a text is said: in the same conversation, in others, each at its place; not in what was deleted, and not what
// only begins alike.
func TestWhere(t *testing.T) {
	s := newSite(t, page.Options{})
	thread, main := s.thread(lineage.ThreadOptions{Title: "here"}, lineage.User("the same"), lineage.Assistant("something"), lineage.User("the same"))
	other, _ := s.thread(lineage.ThreadOptions{Title: hostile[0]}, lineage.User("else"), lineage.User("the same"))
	_, _ = s.thread(lineage.ThreadOptions{Title: "not this"}, lineage.User("the same but longer"))
	gone, _ := s.thread(lineage.ThreadOptions{Title: "deleted"}, lineage.User("the same"))
	require.NoError(t, gone.Delete(t.Context()))
	moved, left := s.thread(lineage.ThreadOptions{Title: "taken back"}, lineage.User("one"), lineage.User("the same"))
	require.NoError(t, left.MoveTo(t.Context(), s.first(left), "rewind"))
	at := "/t/" + thread.ID().String()
	status, body := s.get(at + "/where/" + s.first(main).String() + "?part")
	require.Equal(t, 200, status)
	require.Contains(t, body, "2 other places in 2 conversations")
	require.Contains(t, body, `href="`+at+`?at=3#m3"`)
	require.Contains(t, body, `href="/t/`+other.ID().String()+`?at=2#m2"`)
	require.NotContains(t, body, moved.ID().String())
	require.NotContains(t, body, "<script>")
	tip, err := main.Tip(t.Context())
	require.NoError(t, err)
	second, err := s.store.At(t.Context(), tip, 2)
	require.NoError(t, err)
	_, body = s.get(at + "/where/" + second.String() + "?part")
	require.Contains(t, body, "Nothing else says the same")
	status, _ = s.get("/t/" + other.ID().String() + "/where/" + second.String())
	require.Equal(t, 404, status, "a message of another conversation")
	for range 70 {
		_, err = main.Extend(t.Context(), lineage.User("the same"))
		require.NoError(t, err)
	}
	_, body = s.get(at + "/where/" + s.first(main).String() + "?part")
	require.Contains(t, body, "More than 60 other places")
}

// editing is the form of an edit as the page sends it.
func (s *site) editing(path string) url.Values {
	s.t.Helper()
	status, body := s.get(path)
	require.Equal(s.t, 200, status, body)
	form := make(url.Values)
	for _, field := range regexp.MustCompile(`<input type="hidden" name="([a-z]+)" value="([^"]*)">`).FindAllStringSubmatch(body, -1) {
		form.Set(field[1], field[2])
	}
	form.Set("name", regexp.MustCompile(`name="name" value="([^"]*)"`).FindStringSubmatch(body)[1])
	return form
}

func (s *site) texts(c *lineage.Context) (all []string) {
	for e, err := range c.Entries(s.t.Context(), lineage.Window{}) {
		require.NoError(s.t, err)
		all = append(all, string(e.Body))
	}
	return all
}

// An edit makes a branch in which a message reads differently, with what follows that was chosen: prompts are not results.
// Nothing is done to the conversation, and nothing at all if it is not as it was shown.
func TestEditing(t *testing.T) {
	s := newSite(t, page.Options{})
	items := append([]lineage.Item{lineage.User("one\n <b>"), lineage.Assistant("two")}, call(1)...)
	thread, main := s.thread(lineage.ThreadOptions{}, append(items, lineage.User("three"), lineage.Assistant("four"))...)
	before := s.texts(main)
	at := "/t/" + thread.ID().String() + "/edit"
	_, body := s.get(at + "?at=1")
	require.Contains(t, body, "one\n &lt;b&gt;</textarea>")
	require.Contains(t, body, "the prompts after it: 1")
	require.Contains(t, body, "all messages after it: 5")
	for i, replay := range []string{"", "prompts", "all"} {
		form := s.editing(at + "?at=1")
		require.Equal(t, fmt.Sprint("edit-", i+1), form.Get("name"))
		form.Set("text", "another\r\ntext "+hostile[0])
		form.Set("replay", replay)
		status, to := s.post(at, form)
		require.Equal(t, 303, status)
		branch, err := thread.Branch(t.Context(), form.Get("name"))
		require.NoError(t, err)
		require.Contains(t, to, branch.Context.String())
		c, err := s.store.Context(t.Context(), branch.Context)
		require.NoError(t, err)
		want := map[string][]string{"": {}, "prompts": {"three"}, "all": before[1:]}[replay]
		require.Equal(t, append([]string{"another\ntext " + hostile[0]}, want...), s.texts(c), replay)
	}
	require.Equal(t, before, s.texts(main))

	// The only text of a JSON message is edited alone, and the rest stays byte for byte.
	form := s.editing(at + "?at=4")
	require.NotEmpty(t, form.Get("was"))
	_, body = s.get(at + "?at=3")
	require.Contains(t, body, "it remains a JSON object")
	form = s.editing(at + "?at=3")
	form.Set("text", "no object")
	status, _ := s.post(at, form)
	require.Equal(t, 400, status)
	said := []byte(`{ "role":"user", "content":[ {"type":"text","text":"a \"text\""} ],"more":  [1.0] }`)
	_, err := main.Extend(t.Context(), lineage.Item{Role: "user", Type: "application/json", Body: said})
	require.NoError(t, err)
	form = s.editing(at + "?at=7")
	form.Set("text", `b "text"`)
	status, _ = s.post(at, form)
	require.Equal(t, 303, status)
	branch, err := thread.Branch(t.Context(), form.Get("name"))
	require.NoError(t, err)
	c, err := s.store.Context(t.Context(), branch.Context)
	require.NoError(t, err)
	require.Equal(t, strings.Replace(string(said), `a \"text\"`, `b \"text\"`, 1), s.texts(c)[6])

	// What is refused does nothing.
	count := func() int {
		all, err := thread.Branches(t.Context())
		require.NoError(t, err)
		return len(all)
	}
	n := count()
	for name, change := range map[string]func(url.Values){
		"nothing changed": func(f url.Values) { f.Set("text", "one\r\n <b>") },
		"empty":           func(f url.Values) { f.Set("text", " ") },
		"too long":        func(f url.Values) { f.Set("text", strings.Repeat("x", 300<<10)) },
		"a taken name":    func(f url.Values) { f.Set("text", "x"); f.Set("name", "edit-1") },
		"another text":    func(f url.Values) { f.Set("text", "x"); f.Set("was", "0") },
		"another branch":  func(f url.Values) { f.Set("text", "x"); f.Set("context", c.ID().String()) },
		"no position":     func(f url.Values) { f.Set("text", "x"); f.Set("at", "0") },
		"beyond the end":  func(f url.Values) { f.Set("text", "x"); f.Set("at", "99") },
		"replay":          func(f url.Values) { f.Set("text", "x"); f.Set("replay", "some") },
		"index":           func(f url.Values) { f.Set("text", "x"); f.Set("index", "3") },
	} {
		form := s.editing(at + "?at=1")
		change(form)
		status, _ := s.post(at, form)
		require.GreaterOrEqual(t, status, 400, name)
		require.Less(t, status, 500, name)
		require.Equal(t, n, count(), name)
	}
	form = s.editing(at + "?at=1")
	form.Set("text", "x")
	form.Set("replay", "all")
	_, err = main.Extend(t.Context(), lineage.Assistant("meanwhile"))
	require.NoError(t, err)
	status, _ = s.post(at, form)
	require.Equal(t, 409, status, "more would be repeated than was shown")
	require.Equal(t, n, count())
	form.Set("replay", "")
	status, _ = s.post(at, form)
	require.Equal(t, 303, status)

	// What a page would not give back as it is, is not edited here.
	_, err = main.Extend(t.Context(), lineage.User("hidden \u202e text"), lineage.User("lines\r\nof others"), lineage.User(strings.Repeat("x", 1<<20)))
	require.NoError(t, err)
	for _, position := range []string{"9", "10", "11"} {
		status, body := s.get(at + "?at=" + position)
		require.Equal(t, 400, status)
		require.Contains(t, body, "lineage edit")
	}
}

// The page says how a history goes on in an agent, and what is lost, and writes nothing.
func TestResuming(t *testing.T) {
	var asked page.ResumeQuery
	s := newSite(t, page.Options{
		ReadOnly: true, Agents: []string{"codex", "pi"},
		Resume: func(_ context.Context, q page.ResumeQuery) (*page.Resumed, error) {
			if asked = q; q.Agent == "pi" {
				return nil, fmt.Errorf("%w: pi is not like that", page.ErrNoSession)
			}
			return &page.Resumed{
				Resumed: &records.Resumed{Agent: "codex", File: "/tmp/" + hostile[0], Command: "codex resume 1", Messages: 2, Own: 1, Lines: 3, Bytes: 4},
				Losses:  []lineage.Loss{{Position: 2, Reason: hostile[0]}, {Position: 3, Reason: hostile[0]}, {Reason: "a setting"}}, Note: "choose a folder",
			}, nil
		},
	})
	thread, main := s.thread(lineage.ThreadOptions{}, lineage.User("one"), lineage.Assistant("two"), lineage.User("three"))
	tip, err := main.Tip(t.Context())
	require.NoError(t, err)
	second, err := s.store.At(t.Context(), tip, 2)
	require.NoError(t, err)
	other, err := thread.CreateBranch(t.Context(), "other", lineage.BranchOptions{At: second})
	require.NoError(t, err)
	at := "/t/" + thread.ID().String() + "/resume"
	short := thread.ID().Short()
	for query, want := range map[string]string{
		"":                                 "lineage resume " + short,
		"?agent=codex":                     "lineage resume " + short + " --agent codex",
		"?at=2":                            "lineage resume --thread " + short + " " + second.String(),
		"?at=3":                            "lineage resume " + short,
		"?in=" + other.ID().String():       "lineage resume --thread " + short + " " + other.ID().String(),
		"?in=" + second.String() + "&at=9": "lineage resume --thread " + short + " " + second.String(),
	} {
		status, body := s.get(at + query)
		require.Equal(t, 200, status)
		require.Contains(t, body, `<code id="resume" tabindex="0">`+want+`</code>`, query)
		require.Contains(t, body, "1 as the agent wrote them")
		require.Contains(t, body, "and 1 more")
		require.Contains(t, strings.ToLower(body), "choose a folder")
		require.NotContains(t, body, "<script>document")
		if strings.Contains(query, second.String()) || query == "?at=2" {
			require.Equal(t, second, asked.At, query)
		}
		require.Equal(t, thread.ID(), asked.Thread)
	}
	_, body := s.get(at + "?agent=pi")
	require.Contains(t, body, "pi is not like that")
	require.NotContains(t, body, "data-copy")
	status, _ := s.get(at + "?agent=%3Brm")
	require.Equal(t, 400, status)
	_, body = s.get("/t/" + thread.ID().String())
	require.Contains(t, body, "/resume", "it changes nothing, so a page that is for reading has it")

	s = newSite(t, page.Options{})
	thread, _ = s.thread(lineage.ThreadOptions{}, lineage.User("one"))
	status, _ = s.get("/t/" + thread.ID().String() + "/resume")
	require.Equal(t, 404, status, "nobody can make sessions")
	_, body = s.get("/t/" + thread.ID().String())
	require.NotContains(t, body, "/resume")
}

// The bar at a message, the map, prompts that are not loaded, subagents in place: each control does its work.
func TestBrowserMessageBar(t *testing.T) {
	s := newSite(t, page.Options{})
	items := []lineage.Item{lineage.User("first")}
	for n := range 200 {
		items = append(items, call(n)...)
	}
	items = append(items, lineage.User("the last prompt"), lineage.Assistant("an answer"))
	thread, main := s.thread(lineage.ThreadOptions{Title: "long"}, items...)
	sub, err := main.Fork(t.Context(), lineage.ForkOptions{Metadata: []byte(`{"made_by":"subagent"}`)})
	require.NoError(t, err)
	_, err = sub.Extend(t.Context(), lineage.User("look for it"), lineage.Assistant("it is here"))
	require.NoError(t, err)
	b := s.tab()
	at := s.url + "/t/" + thread.ID().String()
	open(b, at)
	until(b, live+` && !document.querySelector("#map").hidden`)
	last := `[...document.querySelectorAll(".win > .m")].at(-1)`
	over := last + `.dispatchEvent(new PointerEvent("pointerover", { bubbles: true }))`

	// The subagent, in place, and again when it goes on.
	run(b, last+`.querySelector("details.inside").open = true`)
	until(b, last+`.querySelector(".insider")?.textContent.includes("it is here")`)
	_, err = sub.Extend(t.Context(), lineage.User("and more"))
	require.NoError(t, err)
	until(b, last+`.querySelector(".insider")?.textContent.includes("and more")`)
	require.True(t, eval[bool](b, last+`.querySelector("details.inside").open`))
	_, err = main.Extend(t.Context(), lineage.Assistant("the answer after it"))
	require.NoError(t, err)
	until(b, `document.body.textContent.includes("the answer after it")`)
	require.True(t, eval[bool](b, `document.querySelector(".insider").textContent.includes("and more")`), "it stays open")

	// Prompts that are not loaded, and the map.
	b.Do(chromedp.KeyEvent("p"), chromedp.KeyEvent("p"))
	until(b, `document.activeElement.dataset?.prompt === "first" && document.querySelector(".win").dataset.from === "1"`)
	until(b, `location.search === "?at=1"`)
	require.Equal(t, "1", eval[string](b, `document.querySelector("#map").getAttribute("aria-valuenow")`))
	// A part that arrives after the reader has gone elsewhere is left out.
	run(b, `window.__fetch = fetch; window.fetch = async (u, o) => { const late = String(u).includes("from=101"); const a = await window.__fetch(u, o); if (late) { window.__late = true; await new Promise((done) => { window.__go = done; }); } return a; }`)
	run(b, `document.querySelector(".edge.down").dispatchEvent(new Event("reached"))`)
	until(b, `window.__go || document.querySelector(".win").dataset.to !== "100"`)
	run(b, `document.querySelector("#map").dispatchEvent(new KeyboardEvent("keydown", { key: "End", bubbles: true }))`)
	until(b, `document.querySelector(".win").dataset.to === "404"`)
	run(b, `window.__go?.(); window.fetch = window.__fetch`)
	time.Sleep(100 * time.Millisecond)
	require.Equal(t, "404", eval[string](b, `document.querySelector(".win").dataset.to`))
	run(b, `{ const r = document.querySelector("#map").getBoundingClientRect(); document.querySelector("#map").dispatchEvent(new PointerEvent("pointerdown", { bubbles: true, pointerId: 1, clientX: r.left + 5, clientY: r.top + r.height / 2 })) }`)
	until(b, `Number(document.querySelector(".win").dataset.from) < 200 && Number(document.querySelector(".win").dataset.to) > 200`)

	// The bar.
	open(b, at)
	until(b, live)
	run(b, over)
	run(b, `document.querySelector("#tools [data-act=where]").click()`)
	until(b, `document.querySelector("#where").open && document.querySelector("#where").textContent.includes("Nothing else")`)
	run(b, `document.querySelector("#where").close()`)
	run(b, `document.querySelector("#tools [data-act=exact]").click()`)
	until(b, `document.querySelector("#exact").open && document.querySelector("#exact pre").textContent.includes("the answer after it")`)
	run(b, `document.querySelector("#exact").close()`)
	run(b, `document.querySelector("#tools [data-act=checkpoint]").click()`)
	until(b, `document.querySelector("#act").open && document.querySelector("#act [name=at]").value === "404"`)
	b.Do(chromedp.KeyEvent("mark\r"))
	until(b, `document.querySelector(".did")?.textContent === "Checkpoint mark set"`)
	until(b, live)
	run(b, over)
	run(b, `document.querySelector("#tools [data-act=fork]").click()`)
	b.Do(chromedp.KeyEvent("again\r"))
	until(b, `document.querySelector(".did")?.textContent === "Branch again continues here"`)
	until(b, live)
	run(b, last+`.focus()`)
	b.Do(chromedp.KeyEvent("r"))
	until(b, `document.body.dataset.view === "edit"`)
	run(b, `document.querySelector("#text").value = "said otherwise"; document.querySelector("[value=all]").disabled || document.querySelector("[value=all]").click()`)
	b.Do(chromedp.Click(chromedp.CSS("button.main")))
	until(b, `document.querySelector(".did")?.textContent === "Branch edit-1 has the other text" && document.body.textContent.includes("said otherwise")`)
	mark, err := thread.Checkpoint(t.Context(), "mark")
	require.NoError(t, err)
	tip, err := main.Tip(t.Context())
	require.NoError(t, err)
	require.Equal(t, tip, mark.Span)
	require.Empty(t, b.Problems())
}
