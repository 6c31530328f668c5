package render

import (
	"bytes"
	"html/template"
	"regexp"
	"strconv"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// markup renders Markdown. Its parser has no HTML: tags stay in the text as they are written. Images become links, so
// that a page loads nothing of others.
var markup = goldmark.New(
	goldmark.WithParser(parser.NewParser(
		parser.WithBlockParsers(
			util.Prioritized(parser.NewSetextHeadingParser(), 100),
			util.Prioritized(parser.NewThematicBreakParser(), 200),
			util.Prioritized(parser.NewListParser(), 300),
			util.Prioritized(parser.NewListItemParser(), 400),
			util.Prioritized(parser.NewCodeBlockParser(), 500),
			util.Prioritized(parser.NewATXHeadingParser(), 600),
			util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
			util.Prioritized(parser.NewBlockquoteParser(), 800),
			util.Prioritized(parser.NewParagraphParser(), 1000),
		),
		parser.WithInlineParsers(
			util.Prioritized(parser.NewCodeSpanParser(), 100),
			util.Prioritized(parser.NewLinkParser(), 200),
			util.Prioritized(parser.NewAutoLinkParser(), 300),
			util.Prioritized(parser.NewEmphasisParser(), 500),
		),
	)),
	goldmark.WithExtensions(extension.Table, extension.Strikethrough),
	goldmark.WithRendererOptions(html.WithHardWraps(), renderer.WithNodeRenderers(util.Prioritized(nodes{}, 100))),
)

// nodes renders what is not rendered as usual: images and blocks of code.
type nodes struct{}

func (nodes) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindImage, image)
	r.Register(ast.KindFencedCodeBlock, fenced)
}

// image writes an image as a link to it.
func image(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		_, err := w.WriteString("</a>")
		return ast.WalkContinue, err
	}
	_, _ = w.WriteString(`<a href="`)
	if to := node.(*ast.Image).Destination; !html.IsDangerousURL(to) {
		_, _ = w.Write(util.EscapeHTML(util.URLEscape(to, true)))
	}
	_, err := w.WriteString(`">image: `)
	return ast.WalkContinue, err
}

// fenced writes a block of code with its language.
func fenced(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkSkipChildren, nil
	}
	block := node.(*ast.FencedCodeBlock)
	var code bytes.Buffer
	for i := range block.Lines().Len() {
		line := block.Lines().At(i)
		code.Write(line.Value(source))
	}
	_, err := w.WriteString(string(Code(string(block.Language(source)), code.String())))
	return ast.WalkSkipChildren, err
}

// policy is what is left of the HTML that Markdown makes, should the renderer let anything else through.
var policy = func() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowElements("p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "li", "blockquote", "pre", "code", "em", "strong", "del", "span",
		"table", "thead", "tbody", "tr", "th", "td")
	p.AllowAttrs("start").Matching(bluemonday.Integer).OnElements("ol")
	p.AllowElements("ol")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^[a-z0-9 -]{1,40}$`)).OnElements("pre", "code", "span")
	p.AllowAttrs("href").OnElements("a")
	p.AllowURLSchemes("http", "https", "mailto")
	p.RequireParseableURLs(true)
	p.AllowRelativeURLs(false)
	p.RequireNoFollowOnLinks(true)
	p.RequireNoReferrerOnLinks(true)
	p.AddTargetBlankToFullyQualifiedLinks(true)
	return p
}()

// Limits of what is rendered. Other text is shown as it is. The time for a line grows with the square of the quotes and
// list items that begin in it, and browsers limit nesting.
const (
	maxMarkup        = 64 << 10
	maxMarkersInLine = 20
	maxMarkupNesting = 50
)

// markers matches lines with too many beginnings of quotes and list items.
var markers = regexp.MustCompile(`(?m)^(?:[ \t]*(?:>|[-+*][ \t]|\d{1,9}[.)][ \t])){` + strconv.Itoa(maxMarkersInLine+1) + `}`)

// Markdown returns the HTML of a Markdown text: no tags of the text, links that tell nothing about the page, and
// nothing that a browser loads. ok is false if the text is too large or nested too deeply.
func Markdown(markdown string) (made template.HTML, ok bool) {
	if len(markdown) > maxMarkup || markers.MatchString(markdown) {
		return "", false
	}
	return rendered.get("markdown\x00"+markdown, func() (template.HTML, bool) { return toHTML([]byte(newlines.Replace(markdown))) })
}

func toHTML(source []byte) (template.HTML, bool) {
	document := markup.Parser().Parse(text.NewReader(source))
	depth, deepest := 0, 0
	err := ast.Walk(document, func(_ ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			depth--
			return ast.WalkContinue, nil
		}
		depth++
		deepest = max(deepest, depth)
		return ast.WalkContinue, nil
	})
	if err != nil || deepest > maxMarkupNesting {
		return "", false
	}
	var out bytes.Buffer
	if err := markup.Renderer().Render(&out, source, document); err != nil {
		return "", false
	}
	return template.HTML(policy.SanitizeBytes(out.Bytes())), true
}
