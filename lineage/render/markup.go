package render

import (
	"bytes"
	"html/template"
	"regexp"
	"strconv"
	"strings"

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

// markup renders Markdown. Its parser does not support HTML, so tags stay in the text. Images become links, so that a
// page loads nothing from elsewhere.
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

// nodes renders images and blocks of code.
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

// codeAttribute is the attribute with the HTML of a block of code.
const codeAttribute = "code"

// fenced writes a block of code.
func fenced(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkSkipChildren, nil
	}
	made, _ := node.AttributeString(codeAttribute)
	_, err := w.WriteString(string(made.(template.HTML))) // every block of code has the attribute
	return ast.WalkSkipChildren, err
}

// policy allows only the HTML that Markdown is rendered to, in case the renderer lets anything else through.
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

// Limits of texts to render. Other texts are shown as they are. The time for a line grows with the square of the
// number of quotes and list items that begin in it. The time for a text grows with the square of the number of its
// emphasis marks and brackets. Each row of a table has all of its columns. Browsers limit nesting.
const (
	maxMarkup        = 64 << 10
	maxMarkersInLine = 20
	maxMarks         = 5000
	maxCells         = 50_000
	maxMarkupNesting = 50
)

// markers matches lines on which too many quotes and list items begin.
var markers = regexp.MustCompile(`(?m)^(?:[ \t]*(?:>|[-+*][ \t]|\d{1,9}[.)][ \t])){` + strconv.Itoa(maxMarkersInLine+1) + `}`)

// isDear reports whether a text takes too long to render, or expands too much.
func isDear(text string) bool {
	if len(text) > maxMarkup || markers.MatchString(text) {
		return true
	}
	marks, lines, columns := 0, 0, 0
	var last rune
	for line := range strings.Lines(text) {
		lines++
		bars, rule := 0, false
		for _, r := range line {
			switch r {
			case '*', '_', '~', '[', ']':
				if r != last || r == '[' || r == ']' {
					marks++
				}
			case '|':
				bars++
			case '-':
				rule = true
			}
			last = r
		}
		if rule { // it may be the line below the header of a table
			columns = max(columns, bars+1)
		}
	}
	return marks > maxMarks || columns > 2 && columns*lines > maxCells
}

// markdown returns the HTML of a Markdown text. It has no tags from the text, its links reveal nothing about the
// page, and browsers load nothing. ok is false if the text is too large, too expensive or nested too deeply.
func (r *texts) markdown(markdown string) (made template.HTML, ok bool) {
	if isDear(markdown) {
		return "", false
	}
	key := "markdown\x00" + markdown
	if made, ok, known := rendered.get(key); known {
		return made, ok
	}
	made, ok, all := r.toHTML([]byte(newlines.Replace(markdown)))
	if all {
		rendered.put(key, made, ok)
	}
	return made, ok
}

// toHTML renders a Markdown text. all is false if code in it was not highlighted for lack of time.
func (r *texts) toHTML(source []byte) (made template.HTML, ok, all bool) {
	document := markup.Parser().Parse(text.NewReader(source))
	depth, deepest := 0, 0
	all = true
	err := ast.Walk(document, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			depth--
			return ast.WalkContinue, nil
		}
		depth++
		deepest = max(deepest, depth)
		if block, ok := node.(*ast.FencedCodeBlock); ok {
			code, now := r.code(string(block.Language(source)), string(block.Lines().Value(source)))
			block.SetAttributeString(codeAttribute, code)
			all = all && now
		}
		return ast.WalkContinue, nil
	})
	if err != nil || deepest > maxMarkupNesting {
		return "", false, true
	}
	var out bytes.Buffer
	if err := markup.Renderer().Render(&out, source, document); err != nil {
		return "", false, true
	}
	return template.HTML(policy.SanitizeBytes(out.Bytes())), true, all
}

// newlines normalises line ends.
var newlines = strings.NewReplacer("\r\n", "\n", "\r", "\n")
