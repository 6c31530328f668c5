package render

import (
	"html/template"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// No tag of any text gets through, and links lead only to other sites.
func FuzzMarkdownHoldsNoForeignMarkup(f *testing.F) {
	for _, seed := range []string{
		"# a\n\n> b\n> - c\n", "<script>", "a\n<b>\n", "```\n<i>", "```go\nfunc f() {}\n```", "```html\n<b>\n```", "`` ` <a> ``", "|a|b|\n|-|:-:|\n|<b>|`c|d`|", "*a **b* c**", "~~~\"><img src=x>\n",
		"[a](javascript:b)", "[a](/t/x/delete)", "![a](//x)", "<javascript:a> <http://a>", "\\<b>", "&lt;b&gt;&#60;", "a  \nb\\\nc", strings.Repeat("> ", 200), strings.Repeat("- ", 5000), strings.Repeat("*a ", 5000), strings.Repeat("[", 5000),
	} {
		f.Add(seed)
	}
	tag := regexp.MustCompile(`^(</?(h[1-6]|p|pre|code|em|strong|del|ul|ol|li|blockquote|hr|br|table|thead|tbody|tr|th|td|span)( class="[a-z0-9 -]*"| start="\d+")?/?>|</a>|<a( href="(https?:|mailto:)[^"<>]*" rel="nofollow noreferrer( noopener)?"( target="_blank")?)?>)`)
	f.Fuzz(func(t *testing.T, text string) {
		html, ok := Markdown(text)
		for i := range len(html) {
			if html[i] == '<' {
				require.Regexp(t, tag, string(html[i:min(len(html), i+2000)]))
			}
		}
		require.True(t, ok || len(text) > maxMarkersInLine, "only what is nested deeply is left as it is")
	})
}

// Text that is too expensive to render, or nested too deeply, is not rendered.
func TestMarkdownIsBounded(t *testing.T) {
	var list strings.Builder
	for i := range maxMarkupNesting {
		list.WriteString(strings.Repeat("  ", i) + "- a\n")
	}
	for _, text := range []string{
		strings.Repeat("a", maxMarkup+1), strings.Repeat(">", maxMarkersInLine+1), "a\n" + strings.Repeat("1. ", maxMarkup/3),
		strings.Repeat(" > - ", 1000) + "a", list.String(),
	} {
		_, ok := Markdown(text)
		require.False(t, ok, text[:20])
	}
	html, ok := Markdown(strings.Repeat("> ", maxMarkersInLine) + "a\n\n----------------------------------------\n")
	require.True(t, ok)
	require.Equal(t, maxMarkersInLine, strings.Count(string(html), "<blockquote>"))
}

// What is remembered is bounded, and the same text has the same HTML.
func TestCache(t *testing.T) {
	var c cache
	text := strings.Repeat("a", 1<<20)
	for i := range 64 {
		for range 2 {
			html, ok := c.get(string(rune(i)), func() (template.HTML, bool) { return template.HTML(text), true })
			require.True(t, ok)
			require.Len(t, html, len(text))
		}
		require.LessOrEqual(t, len(c.young)+len(c.old), 2*(maxRendered>>20)+4)
	}
}

// Ends of lines are one, and nothing is there unseen.
func TestClean(t *testing.T) {
	require.Equal(t, "a\nb\n\ufffdc\u241b", Clean("a\r\nb\r\u202ec\x1b"))
}
