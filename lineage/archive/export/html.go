package export

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"html"
	"html/template"
	"slices"
	"strings"
	"time"

	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/lineage/render"
	"github.com/lineage-store/lineage/lineage/transcript"
)

// templates is a copy, because an executed template cannot be cloned and the server page clones the original.
var templates = template.Must(render.Template.Clone())

// maxFolds limits the nesting of branches on a page, because browsers limit the nesting of elements. Deeper branches
// are written at the end of the conversation.
const maxFolds = 24

// page is the state of writing one conversation on a page.
type page struct {
	*exporter
	tree *tree
	// later are the lines that are too deep to be nested, with their anchors.
	later []anchoredFork
	count int
	base  string // prefix of the conversation's anchors
	depth int    // of the line being written
	// items are not written yet. prefix is the prefix of their anchors.
	items  []*transcript.Item
	prefix string
	// prompts are the first prompts of the active history, for the index. more is the number of further ones.
	prompts []indexed
	more    int
}

// indexed is a prompt in the index of a page.
type indexed struct{ anchor, start string }

type anchoredFork struct {
	*fork
	anchor string
}

// html writes a self-contained page without scripts. Its content policy does not allow browsers to
// load anything.
func (x *exporter) html(ctx context.Context) error {
	single := x.o.Scope.Context != nil || len(x.o.Scope.Threads) == 1
	if !single {
		x.beginPage(cmp.Or(x.o.Title, severalTitle), "")
	}
	n := 0
	err := x.each(ctx, func(conv *conversation) (err error) {
		if single {
			title := x.o.Title
			if title == "" {
				if title, err = x.title(ctx, conv); err != nil {
					return err
				}
			}
			x.beginPage(title, "")
		}
		if _, err = x.htmlConversation(ctx, conv, n+1, single); err == nil {
			n++
		}
		return err
	})
	if err != nil {
		return err
	}
	if n == 0 {
		x.put("<p class=\"note\">There is nothing here.</p>\n")
	}
	x.endPage()
	return nil
}

// severalTitle is the title of a page with any number of conversations.
const severalTitle = "Conversations"

func (x *exporter) endPage() { x.put("</main>\n</body>\n</html>\n") }

// beginPage writes the start of a page. The content policy allows the scripts that the directive names; an empty one
// allows none.
func (x *exporter) beginPage(title, scripts string) {
	x.put("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; ", scripts, "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'\">\n",
		"<meta name=\"referrer\" content=\"no-referrer\">\n",
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
		"<title>", escape(title), "</title>\n<style>\n", render.Style, pageStyle, "</style>\n</head>\n<body>\n<main>\n<h1>", escape(title), "</h1>\n")
}

func (x *exporter) htmlConversation(ctx context.Context, conv *conversation, n int, single bool) (*page, error) {
	t, err := newTree(ctx, x.store, conv.tips)
	if err != nil {
		return nil, err
	}
	p := &page{exporter: x, tree: t, base: fmt.Sprintf("c%d", n)}
	if single {
		x.put("<section class=\"chat\" id=\"", p.base, "\">\n")
	} else {
		title, err := x.title(ctx, conv)
		if err != nil {
			return nil, err
		}
		x.put("<details class=\"chat\" id=\"", p.base, "\">\n<summary><span class=\"title\">", escape(title), "</span> <span class=\"date\">", conv.info.UpdatedAt.UTC().Format(time.DateOnly), "</span></summary>\n")
	}
	if about := about(conv); about != "" {
		x.put("<p class=\"note\">", escape(about), "</p>\n")
	}
	x.put("<div class=\"history\">\n")
	for i, l := range t.forks() {
		if err := p.branch(ctx, l, 0, i == 0); err != nil {
			return nil, err
		}
	}
	for len(p.later) > 0 {
		l := p.later[0]
		p.later = p.later[1:]
		x.put("<section id=\"", l.anchor, "\">\n")
		const open = false
		if err := p.branch(ctx, l.fork, 1, open); err != nil {
			return nil, err
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
	return p, nil
}

// Limits of the index of a conversation.
const (
	minIndex = 3
	maxIndex = 1000
)

// index writes the prompts of the active history if there are several. A reader sees them first on the page.
func (p *page) index() {
	if len(p.prompts) < minIndex {
		return
	}
	p.put("<section class=\"index\">\n<ol>\n")
	for _, prompt := range p.prompts {
		p.put("<li><a href=\"#", prompt.anchor, "\">", "<bdi>", escape(prompt.start), "</bdi>", "</a></li>\n")
	}
	p.put("</ol>\n")
	if p.more > 0 {
		p.put("<p class=\"note\">", amount.Plural(p.more, "more prompt"), "</p>\n")
	}
	p.put("</section>\n")
}

// branch writes a line. Lines that fork from it are collapsed at the place where they fork. The main line is not
// collapsed.
func (p *page) branch(ctx context.Context, l *fork, depth int, open bool) error {
	if depth >= maxFolds {
		p.count++
		anchor := fmt.Sprintf("%s-b%d", p.base, p.count)
		p.later = append(p.later, anchoredFork{l, anchor})
		p.put("<p class=\"fork\"><a href=\"#", anchor, "\">", escape(lineTitle(l.line)), "</a></p>\n")
		return nil
	}
	if !open {
		p.put("<details class=\"branch\">\n<summary>", escape(lineTitle(l.line)), "</summary>\n")
	}
	above, prefix := p.depth, p.prefix
	p.depth = depth + 1
	if open {
		p.depth = 0
	}
	p.count++
	p.prefix = fmt.Sprintf("%s-b%d-", p.base, p.count)
	err := p.write(ctx, p.tree, l, p)
	if err != nil {
		return err
	}
	p.close(ctx)
	p.depth, p.prefix = above, prefix
	if !open {
		p.put("</details>\n")
	}
	return nil
}

func (p *page) passing(ctx context.Context, at *passing) error {
	p.close(ctx)
	if len(at.names) > 0 {
		p.put("<p class=\"tip\">", escape(strings.Join(at.names, ", ")), "</p>\n")
	}
	for _, off := range at.off {
		const open = false
		if err := p.branch(ctx, off, max(p.depth, 1), open); err != nil {
			return err
		}
	}
	return nil
}

// maxItems limits the items that are held before they are written.
const maxItems = 256

func (p *page) item(ctx context.Context, i *transcript.Item, first bool) {
	if first && len(p.items) >= maxItems {
		p.close(ctx)
	}
	p.items = append(p.items, i)
}

// close writes the items that are held.
func (p *page) close(ctx context.Context) {
	messages := render.Messages(ctx, p.items, render.Options{Image: p.image, Prefix: p.prefix})
	p.items = p.items[:0]
	if len(messages) == 0 {
		return
	}
	for _, m := range messages {
		m.ID = "" // there is no store to ask
	}
	var out strings.Builder
	if err := templates.ExecuteTemplate(&out, "messages", messages); err != nil {
		p.put("<p class=\"note\">", escape(err.Error()), "</p>\n")
		return
	}
	p.put(render.Clean(out.String()))
	for _, m := range messages {
		switch {
		case m.Prompt == "" || p.depth > 0:
		case len(p.prompts) < maxIndex:
			p.prompts = append(p.prompts, indexed{m.Anchor, m.Prompt})
		default:
			p.more++
		}
	}
}

// image returns a data URL for an image that a page may show, empty for any other file. A page never refers to
// external content.
func (p *page) image(from *transcript.Message, f *transcript.FileInfo) template.URL {
	if from.Filename != "" {
		if from.Body == nil || !slices.Contains(shown, from.Type) || int64(len(from.Body)) > p.o.MaxImage {
			return ""
		}
		return template.URL("data:" + from.Type + ";base64," + base64.StdEncoding.EncodeToString(from.Body))
	}
	for _, kind := range shown {
		data, ok := strings.CutPrefix(f.URL, "data:"+kind+";base64,")
		if !ok || int64(len(data)) > p.o.MaxImage/3*4 {
			continue
		}
		if raw, err := base64.StdEncoding.DecodeString(data); err == nil {
			return template.URL("data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(raw))
		}
	}
	return ""
}

// escape makes text safe between tags and in quoted attributes.
func escape(text string) string { return html.EscapeString(render.Clean(text)) }

// pageStyle is the style of a page around its messages.
const pageStyle = `
* { box-sizing: border-box; }
body { margin: 0; background: var(--bg); color: var(--text); font: 15px/1.55 var(--sans); }
main { max-width: 54rem; margin: 0 auto; padding: 1.5rem 1.2rem 4rem; }
h1 { font-size: 1.3rem; overflow-wrap: anywhere; }
h1, .tip, .fork, .branch > summary { unicode-bidi: isolate; }
a { color: var(--accent); }
.m { scroll-margin-top: 1rem; }
.history { display: flex; flex-direction: column; min-width: 0; }
.index { order: -1; font-size: .9rem; border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
.tip { color: var(--soft); font-size: .85rem; } .tip::before { content: "\25CF  "; color: var(--accent); }
.branch { border-inline-start: 3px solid var(--accent); padding-inline-start: .8rem; margin: .7rem 0; min-width: 0; }
.branch > summary, .fork, details.chat > summary { cursor: pointer; overflow-wrap: anywhere; } .branch > summary, .fork { color: var(--accent); font-size: .85rem; }
details.chat { border-top: 1px solid var(--line); padding: .4rem 0; }
.title { font-weight: 600; } .date { color: var(--soft); font-size: .85rem; }
`
