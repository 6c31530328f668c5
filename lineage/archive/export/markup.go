package export

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/lineage-store/lineage/lineage/transcript"
)

// markup renders Markdown for a page. Its parser has no HTML, links and images: they stay in the
// text as written, so that no tag of a message gets into the page, and the page has no external
// references.
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
			util.Prioritized(parser.NewEmphasisParser(), 500),
		),
	)),
	goldmark.WithExtensions(extension.Table, extension.Strikethrough),
	goldmark.WithRendererOptions(html.WithHardWraps()),
)

// Limits of what is rendered. Other text is shown unrendered. The time for a line grows with the
// square of the quotes and list items that begin in it, and browsers limit nesting.
const (
	maxMarkup        = 64 << 10
	maxMarkersInLine = 20
	maxMarkupNesting = 50
)

// markers matches lines with too many beginnings of quotes and list items.
var markers = regexp.MustCompile(`(?m)^(?:[ \t]*(?:>|[-+*][ \t]|\d{1,9}[.)][ \t])){` + strconv.Itoa(maxMarkersInLine+1) + `}`)

// isMarkdown reports whether the text of an item is treated as Markdown: models write it, people
// mostly do not.
func isMarkdown(i *transcript.Item) bool {
	return i.Kind == transcript.Answer || strings.HasPrefix(i.From.Type, "text/markdown")
}

// markdown returns the HTML of a Markdown text. ok is false if the text is too large or nested too
// deeply.
func markdown(markdownText string) (string, bool) {
	source := []byte(newlines.Replace(clean(markdownText)))
	if len(source) > maxMarkup || markers.Match(source) {
		return "", false
	}
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
	var out strings.Builder
	if err := markup.Renderer().Render(&out, source, document); err != nil {
		return "", false
	}
	return out.String(), true
}
