package export

import (
	"context"
	"encoding/base64"
	"fmt"
	"html"
	"slices"
	"strings"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/message"
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
}

type numbered struct {
	line
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
	for i, l := range t.lines() {
		if err := p.branch(ctx, l, 0, i == 0); err != nil {
			return err
		}
	}
	for len(p.later) > 0 {
		l := p.later[0]
		p.later = p.later[1:]
		x.put("<section id=\"", l.anchor, "\">\n")
		if err := p.branch(ctx, l.line, 1, false); err != nil {
			return err
		}
		x.put("</section>\n")
	}
	if single {
		x.put("</section>\n")
	} else {
		x.put("</details>\n")
	}
	return nil
}

// branch writes a line, with the lines that fork from it collapsed at that place. The main line is
// not collapsed.
func (p *page) branch(ctx context.Context, l line, depth int, open bool) error {
	if depth >= maxFolds {
		p.count++
		anchor := fmt.Sprintf("%s-b%d", p.base, p.count)
		p.later = append(p.later, numbered{l, anchor})
		p.put("<p class=\"fork\"><a href=\"#", anchor, "\">", escape(lineTitle(l)), "</a></p>\n")
		return nil
	}
	if !open {
		p.put("<details class=\"branch\">\n<summary>", escape(lineTitle(l)), "</summary>\n")
	}
	for at, err := range p.tree.walk(ctx, l) {
		if err != nil {
			return err
		}
		for _, e := range at.entries {
			if err := p.entry(ctx, e); err != nil {
				return err
			}
		}
		if len(at.names) > 0 {
			p.put("<p class=\"tip\">", escape(strings.Join(at.names, ", ")), "</p>\n")
		}
		for _, off := range at.off {
			if err := p.branch(ctx, off, depth+1, false); err != nil {
				return err
			}
		}
		if err := p.failed(); err != nil {
			return err
		}
	}
	if !open {
		p.put("</details>\n")
	}
	return nil
}

// styledRoles are the roles with a style of their own.
var styledRoles = []string{"system", "developer", "user", "assistant", "tool"}

func (p *page) entry(ctx context.Context, e *lineage.Entry) error {
	class := "other"
	if e.Kind == lineage.Message && slices.Contains(styledRoles, e.Role) {
		class = e.Role
	}
	p.put("<article class=\"", class, "\">\n<header>", escape(entryTitle(e)), "</header>\n")
	body, ok, err := p.body(ctx, e)
	if err != nil {
		return err
	}
	switch {
	case !ok:
		p.put("<p class=\"gone\">", escape(tooLarge(e)), "</p>\n")
	case e.Erased:
		p.put("<p class=\"gone\">", erased, "</p>\n")
	case e.Kind == lineage.Asset:
		p.asset(e, body)
	default:
		for _, m := range said(e, body) {
			for i := range m.Parts {
				p.part(&m.Parts[i], isMarkdown(e))
			}
		}
	}
	p.put("</article>\n")
	return nil
}

// shown are the image types that a page shows: those that can contain only an image.
var shown = []string{"image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"}

func (p *page) asset(e *lineage.Entry, body []byte) {
	if !slices.Contains(shown, e.Type) || e.Size > p.o.MaxImage {
		p.put("<p class=\"note\">", escape(assetLabel(e)), "</p>\n")
		return
	}
	p.put("<figure><img alt=\"", escape(e.Filename), "\" src=\"data:", e.Type, ";base64,", base64.StdEncoding.EncodeToString(body), "\"><figcaption>",
		escape(assetLabel(e)), "</figcaption></figure>\n")
}

func (p *page) part(x *message.Part, isMarkdown bool) {
	switch x.Kind {
	case message.TextKind:
		p.text(x.Text, isMarkdown)
	case message.ReasoningKind:
		p.fold("reasoning", x.Text)
	case message.CallKind:
		p.fold("calls "+x.Tool+label(x.CallID), x.Arguments())
	case message.ResultKind:
		if x.CallID == "" {
			p.text(x.OutputText(), false)
			return
		}
		p.fold("result"+label(x.CallID), x.OutputText())
	case message.FileKind:
		p.media(x)
	case message.DataKind:
		if x.Name != "step-start" {
			p.text(x.String(), false)
		}
	}
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

func label(id string) string {
	if id == "" {
		return ""
	}
	return " (" + id + ")"
}

func (p *page) fold(summary, text string) {
	p.put("<details class=\"part\"><summary>", escape(summary), "</summary><pre dir=\"auto\">", escape(text), "</pre></details>\n")
}

// media shows an image in the message and names anything else. A page never refers to external
// content.
func (p *page) media(x *message.Part) {
	for _, kind := range shown {
		data, ok := strings.CutPrefix(x.URL, "data:"+kind+";base64,")
		if !ok || int64(len(data)) > p.o.MaxImage/3*4 {
			continue
		}
		raw, err := base64.StdEncoding.DecodeString(data)
		if err != nil {
			break
		}
		p.put("<figure><img alt=\"", escape(x.Filename), "\" src=\"data:", kind, ";base64,", base64.StdEncoding.EncodeToString(raw), "\"></figure>\n")
		return
	}
	p.put("<p class=\"note\">", escape(x.Label()), "</p>\n")
}

// escape makes text safe between tags and in quoted attributes.
func escape(text string) string { return html.EscapeString(clean(text)) }

const pageStyle = `:root { color-scheme: light dark; --back: #fff; --text: #1c1c1e; --soft: #6b6b70; --line: #dcdce0; --user: #eef4ff; --assistant: #f7f7f8; --system: #fff8e6; --tool: #eefaf0; --accent: #2f5fd0; }
@media (prefers-color-scheme: dark) { :root { --back: #16161a; --text: #e6e6ea; --soft: #9a9aa2; --line: #34343a; --user: #1d2740; --assistant: #1e1e23; --system: #302a18; --tool: #182a1e; --accent: #8fb0ff; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--text); font: 16px/1.55 system-ui, sans-serif; }
main { max-width: 56rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.5rem; overflow-wrap: anywhere; }
h1, header, summary, figcaption, .note, .tip, .fork { unicode-bidi: isolate; }
a { color: var(--accent); }
article { border: 1px solid var(--line); border-radius: .5rem; padding: .6rem .9rem; margin: .7rem 0; background: var(--assistant); }
article.user { background: var(--user); }
article.system, article.developer { background: var(--system); }
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
.tip::before { content: "\25CF  "; color: var(--accent); }
.branch { border-left: 3px solid var(--accent); padding-left: .8rem; margin: .7rem 0; }
.branch > summary, .fork { color: var(--accent); }
details.chat { border-top: 1px solid var(--line); padding: .4rem 0; }
.title { font-weight: 600; }
figure { margin: .3rem 0; }
img { max-width: 100%; height: auto; }
`
