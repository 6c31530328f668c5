package export_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/internal/storetest"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive/export"
	"github.com/lineage-store/lineage/lineage/message/messagetest"
)

var bg = context.Background()

func TestMain(m *testing.M) {
	campaign.Checks(15)
	os.Exit(m.Run())
}

func written(t testing.TB, s *lineage.Store, format export.Format, o export.Options) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, export.Write(bg, s, &b, format, o))
	return b.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("LINEAGE_UPDATE_GOLDEN") == "1" {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

func extend(t testing.TB, c *lineage.Context, items ...lineage.Item) []lineage.SpanRef {
	t.Helper()
	refs, err := c.Extend(bg, items...)
	require.NoError(t, err)
	return refs
}

func structured(role, body string) lineage.Item {
	return lineage.Item{Role: role, Type: "application/json", Body: []byte(body)}
}

const (
	openAICall = `{"content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"search","arguments":"{\"q\":\"dag\"}"}}]}`
	blocks     = `[{"type":"thinking","thinking":"hm"},{"type":"text","text":"Looking."},{"type":"tool_use","id":"tu_1","name":"read","input":{"path":"a.go"}}]`
	results    = `[{"type":"tool_result","tool_use_id":"tu_1","content":[{"type":"text","text":"package a"}]},{"type":"text","text":"and now?"}]`
	uiMessage  = `{"id":"m1","role":"assistant","parts":[{"type":"step-start"},{"type":"reasoning","text":"so"},{"type":"tool-add","toolCallId":"t1","state":"output-available","input":{"a":1},"output":{"sum":2}},{"type":"text","text":"Two."}]}`
	gptContent = `{"content_type":"text","parts":["See ",{"content_type":"image_asset_pointer","asset_pointer":"file-service://abc"}]}`
	codexItem  = `{"type":"function_call","name":"shell","arguments":"{\"cmd\":\"ls\"}","call_id":"c9"}`
	onePixel   = "\x89PNG\r\n\x1a\nnot really an image"
	hostile    = "</div><script>alert(1)</script>\n# Not a heading\n```\n--><img src=x onerror=alert(2)>\x00\x1b[31m\u202e\xff&amp; \"quoted\" 'single'"
)

// sample creates a store with all kinds of content.
func sample(t testing.TB) (*lineage.Store, *lineage.Thread) {
	s := storetest.NewTicking(t)
	thread, err := s.CreateThread(bg, lineage.ThreadOptions{
		SourceID: "chat-1", UserID: "ada", Title: "Graphs <b>& trees</b>",
		Metadata:  []byte(`{"tools": [ {"type":"function","function":{"name":"search"}} ]}`),
		CreatedAt: time.Date(2026, 1, 9, 0, 0, 0, 0, time.UTC),
	})
	require.NoError(t, err)
	main, err := thread.Active(bg)
	require.NoError(t, err)
	refs := extend(t, main,
		lineage.System("Be brief."),
		lineage.User("What is a DAG?"),
		structured("assistant", openAICall).From("model-a"),
		lineage.Item{Role: "tool", Name: "search", Type: "application/json", Body: []byte(`{"tool_call_id":"call_1","content":"A graph without cycles."}`)},
		lineage.Assistant("A graph without cycles.").From("model-a"),
	)
	_, err = thread.CreateBranch(bg, "retry", lineage.BranchOptions{At: refs[1]})
	require.NoError(t, err)
	retry, err := thread.BranchContext(bg, "retry")
	require.NoError(t, err)
	extend(t, retry, lineage.Assistant("Directed acyclic graph."), structured("assistant", blocks), structured("user", results))
	extend(t, main, structured("assistant", uiMessage), structured("user", gptContent), structured("assistant", codexItem),
		structured("tool", `{"unknown":["shape"]}`))
	_, err = main.Extend(bg, lineage.Together(lineage.User(hostile),
		lineage.Item{Kind: lineage.Asset, Filename: "a\"b.png", Type: "image/png", Body: []byte(onePixel)},
		lineage.Item{Kind: lineage.Asset, Filename: "evil.svg", Type: "image/svg+xml", Body: []byte("<svg onload=alert(1)>")},
		lineage.Item{Kind: lineage.Document, Document: "notes.md", Revision: 2, Body: []byte("# Notes\n\n- one")}))
	require.NoError(t, err)
	_, err = thread.CreateBranch(bg, "aside", lineage.BranchOptions{Empty: true})
	require.NoError(t, err)
	aside, err := thread.BranchContext(bg, "aside")
	require.NoError(t, err)
	extend(t, aside, lineage.User("Forget this."), lineage.Assistant("Gone."))
	first, err := aside.All(bg)
	require.NoError(t, err)
	require.NoError(t, s.Erase(bg, first[0].Content))
	// An unnamed context that forks from a branch.
	anonymous, err := retry.Fork(bg, lineage.ForkOptions{})
	require.NoError(t, err)
	entries, err := anonymous.Last(bg, 2)
	require.NoError(t, err)
	require.NoError(t, anonymous.MoveTo(bg, entries[0].Span, "rewind"))
	extend(t, anonymous, lineage.User("Or this?"))
	return s, thread
}

func TestGolden(t *testing.T) {
	s, thread := sample(t)
	for format, name := range map[export.Format]string{
		export.OpenAI: "sample.jsonl", export.Responses: "responses.jsonl", export.Anthropic: "anthropic.jsonl",
		export.ShareGPT: "sharegpt.json", export.Markdown: "sample.md", export.HTML: "sample.html",
	} {
		t.Run(string(format), func(t *testing.T) {
			all := written(t, s, format, export.Options{})
			require.Equal(t, all, written(t, s, format, export.Options{}), "not the same twice")
			golden(t, name, written(t, s, format, export.Options{Scope: export.Scope{Threads: []*lineage.Thread{thread}}}))
		})
	}
	for format, name := range map[export.Format]string{export.OpenAI: "given.jsonl", export.ShareGPT: "given-sharegpt.json"} {
		golden(t, name, written(t, s, format, export.Options{AsGiven: true}))
	}
	for _, format := range []export.Format{export.Responses, export.Anthropic, export.Markdown, export.HTML} {
		require.ErrorIs(t, export.Write(bg, s, io.Discard, format, export.Options{AsGiven: true}), lineage.ErrInvalid)
	}
}

func TestOneContextIsOneHistory(t *testing.T) {
	s, thread := sample(t)
	retry, err := thread.BranchContext(bg, "retry")
	require.NoError(t, err)
	o := export.Options{Scope: export.Scope{Context: retry}}
	require.Equal(t, 1, strings.Count(written(t, s, export.OpenAI, o), "\n"))
	for _, format := range export.Formats() {
		got := written(t, s, format, o)
		require.Contains(t, got, "Directed acyclic graph.")
		require.NotContains(t, got, "A graph without cycles.")
		require.NotContains(t, got, "Or this?")
	}
}

func TestContextOutsideOfThreads(t *testing.T) {
	s := storetest.NewTicking(t)
	c, err := s.NewContext(bg, lineage.ContextOptions{})
	require.NoError(t, err)
	o := export.Options{Scope: export.Scope{Context: c}}
	for _, format := range export.Formats() {
		written(t, s, format, o)
	}
	extend(t, c, lineage.User("alone"))
	for _, format := range export.Formats() {
		require.Contains(t, written(t, s, format, o), "alone")
	}
}

func TestEmptyStore(t *testing.T) {
	s := storetest.NewTicking(t)
	require.Empty(t, written(t, s, export.OpenAI, export.Options{}))
	require.Equal(t, "[\n]\n", written(t, s, export.ShareGPT, export.Options{}))
	require.Empty(t, written(t, s, export.Markdown, export.Options{}))
	require.Contains(t, written(t, s, export.HTML, export.Options{}), "There is nothing here.")
}

func TestUnknownFormat(t *testing.T) {
	require.ErrorIs(t, export.Write(bg, storetest.NewTicking(t), &bytes.Buffer{}, "docx", export.Options{}), export.ErrUnknownFormat)
}

// Message text never becomes markup, and a page has no external references.
func TestPageHoldsNoForeignMarkup(t *testing.T) {
	s, _ := sample(t)
	page := written(t, s, export.HTML, export.Options{})
	requireOwnMarkup(t, page)
}

// Nothing of any message, whatever its shape, is markup of a page.
func TestPageOfAnyHistory(t *testing.T) {
	name := rapid.SampledFrom([]string{"x", hostile, "</summary><script>", "\"onload=\"x", "a\nb", ""})
	rapid.Check(t, func(rt *rapid.T) {
		s := storetest.NewTicking(t)
		_, main := newThread(t, s, lineage.Overrides{})
		for _, body := range messagetest.Wild(rt) {
			extend(t, main, lineage.Item{Role: cmp.Or(body.Role, "user"), Type: body.Type, Body: []byte(body.Bytes)})
		}
		q := func() string { return string(rawjson.Quote(strings.ToValidUTF8(name.Draw(rt, "text"), "?"))) }
		extend(t, main,
			structured("assistant", `{"content":[{"type":"tool_use","id":"1","name":`+q()+`,"input":{"file_path":`+q()+`,"old_string":`+q()+`,"new_string":`+q()+`,`+q()+`:`+q()+`}},{"type":"tool_use","id":"2","name":"Bash","input":{"command":`+q()+`,"description":`+q()+`}}]}`),
			structured("user", `{"content":[{"type":"tool_result","tool_use_id":"1","content":`+q()+`,"is_error":true},{"type":"tool_result","tool_use_id":"3","content":[{"type":"text","text":`+q()+`},{"type":"document","title":`+q()+`,"source":{"type":"url","url":`+q()+`}}]}]}`),
			lineage.User("<system-reminder>"+name.Draw(rt, "text")+"</system-reminder>"))
		requireOwnMarkup(rt, written(t, s, export.HTML, export.Options{}))
	})
}

// requireOwnMarkup requires that a page has only tags of its own and refers to nothing.
func requireOwnMarkup(t require.TestingT, page string) {
	require.True(t, strings.HasPrefix(page, "<!DOCTYPE html>"))
	allowed := regexp.MustCompile(`^<(/?(html|head|style|title|body|main|h1|p|div|pre|section|details|summary|article|header|figure|figcaption|a|b|bdi|time|code|span)|meta|img)[ >]|^</?(h[1-6]|code|em|strong|del|ul|ol|li|blockquote|hr|br|table|thead|tbody|tr|th|td)[ >]`)
	for i := range len(page) {
		if page[i] == '<' && !strings.HasPrefix(page[i:], "<!DOCTYPE html>") {
			require.Regexp(t, allowed, page[i:min(len(page), i+40)])
		}
	}
	require.NotContains(t, page, "<script")
	require.NotContains(t, page, "\x00")
	require.NotRegexp(t, `src="https?:`, page, "nothing is loaded")
	for _, address := range regexp.MustCompile(`(?:src|href)="([^"]*)`).FindAllStringSubmatch(page, -1) {
		require.Regexp(t, `^(data:image/(png|jpeg|gif|webp|avif);base64,[A-Za-z0-9+/=]*|#c\d+-b\d+(-m\d+(-\d+)?)?|(https?:|mailto:).*)$`, address[1])
	}
	require.Equal(t, strings.Count(page, "<details"), strings.Count(page, "</details>"))
	require.Equal(t, strings.Count(page, "<article"), strings.Count(page, "</article>"))
}

func TestAssistantsWriteMarkdown(t *testing.T) {
	s := storetest.NewTicking(t)
	thread, err := s.CreateThread(bg, lineage.ThreadOptions{})
	require.NoError(t, err)
	c, err := thread.Active(bg)
	require.NoError(t, err)
	source := strings.Join([]string{
		"# Title", "Some *words* and `code <b>`", "next line", "", "- one", "- two", "", "```go", "if a < b {}", "```", "",
		"| a | b |", "|---|--:|", "| 1 | ~~2~~ |", "", "<script>alert(1)</script> <b onclick=x>bold</b>", "",
		"[link](javascript:alert(2)) ![image](https://example.com/a.png) <https://example.com/b>", "", "[ref]: https://example.com/c",
	}, "\n")
	extend(t, c, lineage.User(source), lineage.Assistant(source))
	page := written(t, s, export.HTML, export.Options{})
	require.Equal(t, 1, strings.Count(page, "<div class=\"md\""))
	require.Contains(t, page, "<div class=\"text\" dir=\"auto\"># Title\nSome *words*", "what people write is shown as it is")
	for _, want := range []string{
		"<h1>Title</h1>", "<p>Some <em>words</em> and <code>code &lt;b&gt;</code><br>\nnext line</p>", "<li>two</li>",
		`<pre class="code"><code><span class="k-k">if</span>`, "<td>1</td>", "<del>2</del></td>",
		"&lt;script&gt;alert(1)&lt;/script&gt; &lt;b onclick=x&gt;bold&lt;/b&gt;",
		`link <a href="https://example.com/a.png" rel="nofollow noreferrer noopener" target="_blank">image: image</a>`, `<a href="https://example.com/b"`,
	} {
		require.Contains(t, page, want)
	}
}

// Outside of fences, a line of a message never starts a line of the document.
func TestMarkdownQuotesWhatPeopleWrote(t *testing.T) {
	s := storetest.NewTicking(t)
	thread, err := s.CreateThread(bg, lineage.ThreadOptions{Title: "# t\n# u"})
	require.NoError(t, err)
	c, err := thread.Active(bg)
	require.NoError(t, err)
	extend(t, c, lineage.User("# EVIL\r# EVIL\r\n```\n# EVIL"), structured("assistant", strings.ReplaceAll(`[{"type":"tool_use","id":"1","name":"x\n# EVIL","input":"'''''\n# EVIL\n"}]`, "'", "`")))
	got := written(t, s, export.Markdown, export.Options{})
	var fence string
	for _, line := range strings.Split(got, "\n") {
		if ticks := regexp.MustCompile("^`{3,}").FindString(line); ticks != "" && (fence == "" || line == fence) {
			if fence == "" {
				fence = ticks
			} else {
				fence = ""
			}
			continue
		}
		if fence == "" {
			require.False(t, strings.HasPrefix(line, "# EVIL"), got)
		}
	}
	require.Empty(t, fence)
}

func TestLargeBodies(t *testing.T) {
	s := storetest.NewTicking(t)
	thread, err := s.CreateThread(bg, lineage.ThreadOptions{})
	require.NoError(t, err)
	c, err := thread.Active(bg)
	require.NoError(t, err)
	large := strings.Repeat("0123456789abcdef", 10<<10)
	extend(t, c, lineage.User(large))
	for _, format := range export.Formats() {
		require.Contains(t, written(t, s, format, export.Options{}), large)
		var b bytes.Buffer
		err := export.Write(bg, s, &b, format, export.Options{MaxBody: 100 << 10})
		if format.ForPrograms() {
			require.ErrorIs(t, err, lineage.ErrTooLarge)
			continue
		}
		require.NoError(t, err)
		require.Contains(t, b.String(), "159744 more bytes are")
	}
}

// Forks of forks, deeper than a page nests.
func TestDeepBranches(t *testing.T) {
	s := storetest.NewTicking(t)
	thread, err := s.CreateThread(bg, lineage.ThreadOptions{})
	require.NoError(t, err)
	c, err := thread.Active(bg)
	require.NoError(t, err)
	const depth = 200
	extend(t, c, lineage.User("m0 "), lineage.User("end 0 "))
	for i := 1; i < depth; i++ {
		entries, err := c.All(bg)
		require.NoError(t, err)
		c, err = thread.CreateBranch(bg, fmt.Sprintf("b%d", i), lineage.BranchOptions{From: c, At: entries[len(entries)-2].Span})
		require.NoError(t, err)
		extend(t, c, lineage.User(fmt.Sprintf("m%d ", i)), lineage.User(fmt.Sprintf("end %d ", i)))
	}
	for _, format := range []export.Format{export.HTML, export.Markdown} {
		got := written(t, s, format, export.Options{})
		for i := range depth {
			require.Equal(t, 1, strings.Count(got, fmt.Sprintf("end %d ", i)), "%s %d", format, i)
		}
	}
	require.Equal(t, depth, strings.Count(written(t, s, export.OpenAI, export.Options{}), "\n"))
}

// index matches the index of a page, which repeats the beginnings of prompts.
var index = regexp.MustCompile(`(?s)<section class="index">.*?</section>`)

// Formats with branches write each span of a thread once.
func TestEverySpanIsWrittenOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := storetest.NewTicking(t)
		thread, err := s.CreateThread(bg, lineage.ThreadOptions{Title: "Spans"})
		require.NoError(rt, err)
		main, err := thread.Active(bg)
		require.NoError(rt, err)
		contexts, spans, count := []*lineage.Context{main}, []lineage.SpanRef{{}}, 0
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			c := rapid.SampledFrom(contexts).Draw(rt, "context")
			if rapid.Bool().Draw(rt, "fork") {
				at := rapid.SampledFrom(spans).Draw(rt, "at")
				o := lineage.BranchOptions{From: c, At: at, Empty: at.IsZero(), Switch: rapid.Bool().Draw(rt, "switch")}
				fork, err := thread.CreateBranch(bg, fmt.Sprintf("b%d", len(contexts)), o)
				require.NoError(rt, err)
				contexts = append(contexts, fork)
				continue
			}
			count++
			refs, err := c.Extend(bg, lineage.User(fmt.Sprintf("«%d»", count)))
			require.NoError(rt, err)
			spans = append(spans, refs...)
		}
		for _, format := range []export.Format{export.HTML, export.Markdown} {
			got := index.ReplaceAllString(written(t, s, format, export.Options{}), "")
			for i := 1; i <= count; i++ {
				require.Equal(rt, 1, strings.Count(got, fmt.Sprintf("«%d»", i)), "%s %d\n%s", format, i, got)
			}
		}
	})
}

type failing struct{ left int }

var errFull = errors.New("full")

func (f *failing) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestWriterFails(t *testing.T) {
	s, _ := sample(t)
	for _, format := range export.Formats() {
		require.ErrorIs(t, export.Write(bg, s, &failing{left: 100}, format, export.Options{}), errFull)
	}
}

// People read what a call ran and what came out, in one place, and texts of programs as such.
func TestCallsArePutWithTheirResults(t *testing.T) {
	s := storetest.NewTicking(t)
	_, main := newThread(t, s, lineage.Overrides{})
	extend(t, main,
		lineage.User("<system-reminder>remember</system-reminder>\nfix it"),
		structured("assistant", `{"content":[{"type":"tool_use","id":"toolu_1","name":"Bash","input":{"command":"git log\ngit diff"}},{"type":"tool_use","id":"toolu_2","name":"Edit","input":{"file_path":"a.go","old_string":"x","new_string":"y"}}]}`),
		structured("user", `{"content":[{"type":"tool_result","tool_use_id":"toolu_2","content":"edited"}]}`),
		structured("user", `{"content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"Exit code 2\nno","is_error":true}]}`),
		lineage.Assistant("done"))
	page := written(t, s, export.HTML, export.Options{})
	require.Contains(t, page, `<b><bdi>Bash</bdi></b> <code class="what"><bdi>git log git diff</bdi></code> <span class="status">exit 2</span>`)
	require.Contains(t, page, `<pre class="out failed" dir="auto">Exit code 2`+"\nno</pre></details>")
	require.Contains(t, page, "<span class=\"removed\">-x\n</span><span class=\"added\">&#43;y\n</span>")
	require.Contains(t, page, `<b>system-reminder</b> <span class="what"><bdi>remember</bdi>`)
	require.NotContains(t, page, "toolu_")
	require.Equal(t, 4, strings.Count(page, "<article"), "reminder, prompt, calls, answer")
	text := written(t, s, export.Markdown, export.Options{})
	require.Contains(t, text, "**Edit** a.go\n\n```diff\n-x\n+y\n```\n\n*Result · 3*\n\n```\nedited\n```\n")
	require.NotContains(t, text, "toolu_")
}

// A result in a branch names the call before the fork.
func TestResultsInBranches(t *testing.T) {
	s := storetest.NewTicking(t)
	thread, main := newThread(t, s, lineage.Overrides{})
	refs := extend(t, main, structured("assistant", `{"content":[{"type":"tool_use","id":"1","name":"Bash","input":{"command":"ls"}}]}`),
		structured("user", `{"content":[{"type":"tool_result","tool_use_id":"1","content":"of main"}]}`))
	fork, err := thread.CreateBranch(bg, "other", lineage.BranchOptions{From: main, At: refs[0]})
	require.NoError(t, err)
	extend(t, fork, structured("user", `{"content":[{"type":"tool_result","tool_use_id":"1","content":"of other"}]}`))
	page := written(t, s, export.HTML, export.Options{})
	require.Contains(t, page, `<bdi>ls</bdi></code></summary><pre class="out" dir="auto">of main</pre>`)
	require.Contains(t, page, `<b><bdi>Result</bdi></b> <code class="what"><bdi>Bash ls</bdi></code></summary><pre class="out" dir="auto">of other</pre>`)
	text := written(t, s, export.Markdown, export.Options{})
	require.Contains(t, text, "**Bash** ls\n\n*Result · 2*\n\n```\nof main\n```\n")
	require.Contains(t, text, "*Result of Bash ls*\n\n```\nof other\n```\n")
}

// writerFunc is a writer that is a function.
type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// Another process deletes a thread while all are written: it is left out, and those after it are written. A thread that is
// named has to be there.
func TestDeletedMeanwhile(t *testing.T) {
	for _, format := range []export.Format{export.OpenAI, export.ShareGPT, export.Markdown, export.HTML} {
		s := storetest.NewTicking(t)
		var threads []*lineage.Thread
		for _, text := range []string{"first " + strings.Repeat("long ", 100_000), "second", "third"} {
			thread, err := s.CreateThread(bg, lineage.ThreadOptions{})
			require.NoError(t, err)
			main, err := thread.Active(bg)
			require.NoError(t, err)
			_, err = main.Extend(bg, lineage.User(text), lineage.Assistant("yes"))
			require.NoError(t, err)
			threads = append(threads, thread)
		}
		var b bytes.Buffer
		w := writerFunc(func(part []byte) (int, error) {
			if _, err := s.Thread(bg, threads[1].ID()); err == nil { // while the first is written
				require.NotContains(t, string(part), "second")
				require.NoError(t, threads[1].Delete(bg))
			}
			return b.Write(part)
		})
		require.NoError(t, export.Write(bg, s, w, format, export.Options{}), format)
		require.Contains(t, b.String(), "third", format)
		require.NotContains(t, b.String(), "second", format)
		require.ErrorIs(t, export.Write(bg, s, &b, format, export.Options{Scope: export.Scope{Threads: threads}}), lineage.ErrNotFound)
	}
}

// An export reports how many threads were written, up to all of them.
func TestProgressOfThreads(t *testing.T) {
	ctx := t.Context()
	s := storetest.New(t)
	for i := range 3 {
		thread, err := s.CreateThread(ctx, lineage.ThreadOptions{Title: fmt.Sprint("thread ", i)})
		require.NoError(t, err)
		c, err := thread.Active(ctx)
		require.NoError(t, err)
		_, err = c.Extend(ctx, lineage.User("hello"))
		require.NoError(t, err)
	}
	for _, format := range export.Formats() {
		var seen [][2]int
		progress := func(done, total int) { seen = append(seen, [2]int{done, total}) }
		require.NoError(t, export.Write(ctx, s, io.Discard, format, export.Options{Progress: progress}))
		require.Equal(t, [][2]int{{1, 3}, {2, 3}, {3, 3}}, seen, format)
	}
	var seen int
	_, err := export.WriteSite(ctx, s, filepath.Join(t.TempDir(), "site"), export.Options{Progress: func(done, _ int) { seen = done }})
	require.NoError(t, err)
	require.Equal(t, 3, seen)
}
