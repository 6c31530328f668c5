package export

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// No tag of any text gets through.
func FuzzMarkdownHoldsNoForeignMarkup(f *testing.F) {
	for _, seed := range []string{
		"# a\n\n> b\n> - c\n", "<script>", "a\n<b>\n", "```\n<i>", "`` ` <a> ``", "|a|b|\n|-|:-:|\n|<b>|`c|d`|", "*a **b* c**", "~~~\"><img src=x>\n",
		"[a](javascript:b)", "\\<b>", "&lt;b&gt;&#60;", "a  \nb\\\nc", strings.Repeat("> ", 200), strings.Repeat("- ", 5000), strings.Repeat("*a ", 5000),
	} {
		f.Add(seed)
	}
	tag := regexp.MustCompile(`^</?(h[1-6]|p|pre|code|em|strong|del|ul|ol|li|blockquote|hr|br|table|thead|tbody|tr|th|td)( class="language-[^"<>]*"| style="text-align:(left|center|right)"| start="\d+")?>`)
	f.Fuzz(func(t *testing.T, text string) {
		html, ok := markdown(text)
		for i := range len(html) {
			if html[i] == '<' {
				require.Regexp(t, tag, html[i:min(len(html), i+200)])
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
		_, ok := markdown(text)
		require.False(t, ok, text[:20])
	}
	html, ok := markdown(strings.Repeat("> ", maxMarkersInLine) + "a\n\n----------------------------------------\n")
	require.True(t, ok)
	require.Equal(t, maxMarkersInLine, strings.Count(html, "<blockquote>"))
}
