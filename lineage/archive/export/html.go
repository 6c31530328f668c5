package export

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"html"
	"slices"
	"strings"

	"github.com/lineage-store/lineage/lineage/transcript"
)

// maxFolds limits the nesting of branches on a page, because browsers limit nesting. Deeper
// branches are put at the end of the conversation.
const maxFolds = 24

// page writes a conversation of a page.
type page struct {
	*exporter
	tree *tree
	// later are lines that are too deep to be nested, with their anchors.
	later []numbered
	count int
	base  string // prefix of the conversation's anchors
	depth int    // of the line being written
	class string // of the open article, empty for none
	// prompts are the first prompts of the active history, for the index, and more counts the others.
	// prompt is the anchor of the next one, empty if it has none.
	prompts []indexed
	more    int
	prompt  string
}

// indexed is a prompt in the index of a page.
type indexed struct{ anchor, start string }

type numbered struct {
	*fork
	anchor string
}

// html writes a self-contained page without scripts. Its content policy does not allow browsers to
// load anything.
func (x *exporter) html(ctx context.Context) error {
	title, single := x.o.Title, x.o.Scope.Context != nil || len(x.o.Scope.Threads) == 1
	begun := false
	n := 0
	for conv, err := range x.conversations(ctx) {
		if err != nil {
			return err
		}
		if !begun {
			if title == "" {
				title = "Conversations"
				if single {
					if title, err = x.title(ctx, conv); err != nil {
						return err
					}
				}
			}
			x.beginPage(title)
			begun = true
		}
		n++
		if err := x.htmlConversation(ctx, conv, n, single); err != nil {
			return err
		}
	}
	if !begun {
		if title == "" {
			title = "Conversations"
		}
		x.beginPage(title)
		x.put("<p class=\"note\">There is nothing here.</p>\n")
	}
	x.put("</main>\n</body>\n</html>\n")
	return nil
}

func (x *exporter) beginPage(title string) {
	x.put("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'\">\n",
		"<meta name=\"referrer\" content=\"no-referrer\">\n",
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
		"<title>", escape(title), "</title>\n<style>\n", pageStyle, "</style>\n</head>\n<body>\n<main>\n<h1>", escape(title), "</h1>\n")
}

func (x *exporter) htmlConversation(ctx context.Context, conv *conversation, n int, single bool) error {
	t, err := newTree(ctx, x.store, conv.tips)
	if err != nil {
		return err
	}
	p := &page{exporter: x, tree: t, base: fmt.Sprintf("c%d", n)}
	if single {
		x.put("<section class=\"chat\" id=\"", p.base, "\">\n")
	} else {
		title, err := x.title(ctx, conv)
		if err != nil {
			return err
		}
		x.put("<details class=\"chat\" id=\"", p.base, "\">\n<summary><span class=\"title\">", escape(title), "</span></summary>\n")
	}
	if about := about(conv); about != "" {
		x.put("<p class=\"note\">", escape(about), "</p>\n")
	}
	x.put("<div class=\"history\">\n")
	for i, l := range t.forks() {
		if err := p.branch(ctx, l, 0, i == 0); err != nil {
			return err
		}
	}
	for len(p.later) > 0 {
		l := p.later[0]
		p.later = p.later[1:]
		x.put("<section id=\"", l.anchor, "\">\n")
		if err := p.branch(ctx, l.fork, 1, false); err != nil {
			return err
		}
		x.put("</section>\n")
	}
	p.index()
	x.put("</div>\n")
	if single {
		x.put("</section>\n")
	} else {
		x.put("</details>\n")
	}
	return nil
}

// Limits of the index of a conversation.
const (
	minIndex = 3
	maxIndex = 1000
)

// index writes the prompts of the active history, if they are several. A page shows it first.
func (p *page) index() {
	if len(p.prompts) < minIndex {
		return
	}
	p.put("<section class=\"index\">\n<ol>\n")
	for _, of := range p.prompts {
		p.put("<li><a href=\"#", of.anchor, "\">", escape(of.start), "</a></li>\n")
	}
	p.put("</ol>\n")
	if p.more > 0 {
		p.put("<p class=\"note\">", fmt.Sprintf("%d more prompts", p.more), "</p>\n")
	}
	p.put("</section>\n")
}

// lineStart returns the start of a line.
func lineStart(line string) string {
	const longest = 120
	if runes := []rune(line); len(runes) > longest {
		return string(runes[:longest-1]) + "…"
	}
	return line
}

// branch writes a line, with the lines that fork from it collapsed at that place. The main line is
// not collapsed.
func (p *page) branch(ctx context.Context, l *fork, depth int, open bool) error {
	if depth >= maxFolds {
		p.count++
		anchor := fmt.Sprintf("%s-b%d", p.base, p.count)
		p.later = append(p.later, numbered{l, anchor})
		p.put("<p class=\"fork\"><a href=\"#", anchor, "\">", escape(lineTitle(l.line)), "</a></p>\n")
		return nil
	}
	if !open {
		p.put("<details class=\"branch\">\n<summary>", escape(lineTitle(l.line)), "</summary>\n")
	}
	above := p.depth
	p.depth = depth + 1
	if open {
		p.depth = 0
	}
	err := p.write(ctx, p.tree, l, p)
	p.depth = above
	if err != nil {
		return err
	}
	p.close()
	if !open {
		p.put("</details>\n")
	}
	return nil
}

func (p *page) passing(ctx context.Context, at *passing) error {
	p.close()
	if len(at.names) > 0 {
		p.put("<p class=\"tip\">", escape(strings.Join(at.names, ", ")), "</p>\n")
	}
	for _, off := range at.off {
		if err := p.branch(ctx, off, max(p.depth, 1), false); err != nil {
			return err
		}
	}
	return nil
}

// close ends the open article.
func (p *page) close() {
	if p.class != "" {
		p.put("</article>\n")
	}
	p.class = ""
}

// classes are the styles of articles by the kind of their items, and roleClasses those of files, data
// and other texts by the role.
var (
	classes = map[transcript.Kind]string{
		transcript.Prompt: "user", transcript.Answer: "assistant", transcript.Thinking: "assistant", transcript.Call: "assistant", transcript.Result: "tool",
		transcript.Instruction: "system", transcript.Command: "system", transcript.Reminder: "system",
	}
	roleClasses = map[string]string{"user": "user", "assistant": "assistant", "system": "system", "developer": "system", "tool": "tool"}
)

func (p *page) item(i *transcript.Item, first bool) {
	class := classes[i.Kind]
	if first || p.class == "" || class != "" && p.class != class {
		p.open(i, class)
	}
	if i.Kind == transcript.Prompt && p.prompt != "" {
		if len(p.prompts) < maxIndex {
			p.prompts = append(p.prompts, indexed{p.prompt, lineStart(i.Line())})
		} else {
			p.more++
		}
		p.prompt = ""
	}
	switch i.Kind {
	case transcript.Call:
		p.call(i)
	case transcript.Result:
		p.result(i.Result, nil)
	case transcript.File:
		p.file(i.File, i.From)
	case transcript.Note:
		p.put("<p class=\"gone\">", escape("["+i.Text+"]"), "</p>\n")
	case transcript.Thinking, transcript.Instruction, transcript.Reminder:
		p.fold(reminderTitle(i)+" · "+lineStart(transcript.Start(i.Text)), i.Text)
	default:
		p.text(i.Text, isMarkdown(i))
	}
	p.left(i.Left)
}

// open begins an article with an item.
func (p *page) open(i *transcript.Item, class string) {
	p.close()
	if class == "" && i.From.Filename == "" && i.From.Document == "" {
		class = roleClasses[i.From.Role]
	}
	p.class = cmp.Or(class, "other")
	p.put("<article class=\"", p.class, "\"")
	p.prompt = ""
	if p.depth == 0 && p.class == "user" {
		p.count++
		p.prompt = fmt.Sprintf("%s-b%d", p.base, p.count)
		p.put(" id=\"", p.prompt, "\"")
	}
	p.put(">\n<header>", escape(messageTitle(i.From)), "</header>\n")
}

// left notes that bytes are left out.
func (p *page) left(n int) {
	if n > 0 {
		p.put("<p class=\"gone\">", escape(leftOut(n)), "</p>\n")
	}
}

// call writes a call with its results.
func (p *page) call(i *transcript.Item) {
	tool, what := callTitle(i.Call)
	p.put("<details class=\"part\"><summary><strong>", escape(tool), "</strong> <code>", escape(what), "</code>")
	for _, r := range i.Call.Results {
		if r.Failed {
			p.put(" <span class=\"failed\">", escape(strings.TrimPrefix(resultTitle(r, r.From), "Result · ")), "</span>")
		}
	}
	p.put("</summary>\n")
	if i.Call.About != "" {
		p.put("<p class=\"note\">", escape(i.Call.About), "</p>\n")
	}
	if i.Call.Text != i.Call.Title {
		p.pre("", i.Call.Text)
		p.left(i.Call.Left)
	}
	if i.Call.Diff != "" {
		p.diff(i.Call.Diff)
		p.left(i.Call.DiffLeft)
	}
	if i.Call.Rest != nil {
		p.pre("", string(i.Call.Rest))
	}
	for _, r := range i.Call.Results {
		p.output(r, i.From)
	}
	p.put("</details>\n")
}

// result writes a result that is not in its call.
func (p *page) result(r *transcript.ToolResult, within *transcript.Message) {
	if r.ID == "" && r.Call == nil {
		p.text(r.Text, false)
		p.files(r)
		return
	}
	p.put("<details class=\"part\"><summary>", escape(resultTitle(r, within)), "</summary>\n")
	p.output(r, r.From)
	p.put("</details>\n")
}

// output writes what a call returned.
func (p *page) output(r *transcript.ToolResult, within *transcript.Message) {
	if within != r.From {
		p.put("<p class=\"note\">", escape(resultTitle(r, within)), "</p>\n")
	}
	class := ""
	if r.Failed {
		class = "failed"
	}
	if r.Text != "" {
		p.pre(class, r.Text)
	}
	p.files(r)
}

func (p *page) files(r *transcript.ToolResult) {
	for _, f := range r.Files {
		p.file(f, nil)
	}
	p.left(r.Left)
}

// diff writes the lines of a change.
func (p *page) diff(diff string) {
	p.put("<pre class=\"diff\" dir=\"auto\">")
	for line := range strings.Lines(diff) {
		switch line[0] {
		case '+':
			p.put("<span class=\"added\">", escape(line), "</span>")
		case '-':
			p.put("<span class=\"removed\">", escape(line), "</span>")
		default:
			p.put(escape(line))
		}
	}
	p.put("</pre>\n")
}

func (p *page) pre(class, text string) {
	if class != "" {
		class = "class=\"" + class + "\" "
	}
	p.put("<pre ", class, "dir=\"auto\">", escape(text), "</pre>\n")
}

func (p *page) text(text string, isMarkdown bool) {
	if isMarkdown {
		if html, ok := markdown(text); ok {
			p.put("<div class=\"markdown\" dir=\"auto\">\n", html, "</div>\n")
			return
		}
	}
	p.put("<div class=\"text\" dir=\"auto\">", escape(text), "</div>\n")
}

func (p *page) fold(summary, text string) {
	p.put("<details class=\"part\"><summary>", escape(summary), "</summary><pre dir=\"auto\">", escape(text), "</pre></details>\n")
}

// file shows an image and names anything else. from is the message that is the file, nil for a file
// in a message. A page never refers to external content.
func (p *page) file(f *transcript.FileInfo, from *transcript.Message) {
	image := p.image(f)
	if from != nil && from.Filename != "" && from.Body != nil && slices.Contains(shown, from.Type) && int64(len(from.Body)) <= p.o.MaxImage {
		image = "data:" + from.Type + ";base64," + base64.StdEncoding.EncodeToString(from.Body)
	}
	if image == "" {
		p.put("<p class=\"note\">", escape(f.String()), "</p>\n")
		return
	}
	p.put("<figure><img alt=\"", escape(f.Name), "\" src=\"", image, "\"><figcaption>", escape(f.String()), "</figcaption></figure>\n")
}

// image returns the address of an image in a message that a page shows, empty for any other file.
func (p *page) image(f *transcript.FileInfo) string {
	for _, kind := range shown {
		data, ok := strings.CutPrefix(f.URL, "data:"+kind+";base64,")
		if !ok || int64(len(data)) > p.o.MaxImage/3*4 {
			continue
		}
		if raw, err := base64.StdEncoding.DecodeString(data); err == nil {
			return "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(raw)
		}
	}
	return ""
}

// escape makes text safe between tags and in quoted attributes.
func escape(text string) string { return html.EscapeString(clean(text)) }

const pageStyle = `:root { color-scheme: light dark; --back: #fff; --text: #1c1c1e; --soft: #6b6b70; --line: #dcdce0; --user: #eef4ff; --assistant: #f7f7f8; --system: #fff8e6; --tool: #eefaf0; --accent: #2f5fd0; --failed: #b3261e; --added: #e3f6e5; --removed: #fde7e5; }
@media (prefers-color-scheme: dark) { :root { --back: #16161a; --text: #e6e6ea; --soft: #9a9aa2; --line: #34343a; --user: #1d2740; --assistant: #1e1e23; --system: #302a18; --tool: #182a1e; --accent: #8fb0ff; --failed: #ff8a80; --added: #16301b; --removed: #3a1c1a; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--text); font: 16px/1.55 system-ui, sans-serif; }
main { max-width: 56rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.5rem; overflow-wrap: anywhere; }
h1, header, summary, figcaption, .note, .tip, .fork { unicode-bidi: isolate; }
a { color: var(--accent); }
article { border: 1px solid var(--line); border-radius: .5rem; padding: .6rem .9rem; margin: .7rem 0; background: var(--assistant); }
article.user { background: var(--user); }
article.system { background: var(--system); }
article.tool { background: var(--tool); }
header { font-size: .8rem; color: var(--soft); margin-bottom: .3rem; overflow-wrap: anywhere; }
.text, pre { white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: isolate; margin: .2rem 0; }
pre { font: .85rem/1.45 ui-monospace, monospace; }
.markdown { overflow-wrap: anywhere; unicode-bidi: isolate; }
.markdown > :first-child { margin-top: .2rem; }
.markdown > :last-child { margin-bottom: .2rem; }
.markdown :is(h1, h2, h3, h4, h5, h6) { font-size: 1.05rem; margin: .8rem 0 .3rem; }
.markdown pre { border: 1px solid var(--line); border-radius: .3rem; padding: .5rem .7rem; }
.markdown table { border-collapse: collapse; }
.markdown :is(th, td) { border: 1px solid var(--line); padding: .2rem .5rem; }
.markdown blockquote { border-left: 3px solid var(--line); margin-left: 0; padding-left: .8rem; color: var(--soft); }
summary { cursor: pointer; overflow-wrap: anywhere; }
.part > summary, .note, .gone, .tip, figcaption { color: var(--soft); font-size: .85rem; }
.gone { font-style: italic; }
.failed { color: var(--failed); }
.part > summary > code { overflow-wrap: anywhere; color: var(--text); }
.part > summary > strong { color: var(--text); }
.added, .removed { display: block; }
.added { background: var(--added); }
.removed { background: var(--removed); }
.history { display: flex; flex-direction: column; }
.index { order: -1; font-size: .9rem; border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
.tip::before { content: "\25CF  "; color: var(--accent); }
.branch { border-left: 3px solid var(--accent); padding-left: .8rem; margin: .7rem 0; }
.branch > summary, .fork { color: var(--accent); }
details.chat { border-top: 1px solid var(--line); padding: .4rem 0; }
.title { font-weight: 600; }
figure { margin: .3rem 0; }
img { max-width: 100%; height: auto; }
`
