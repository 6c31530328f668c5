package render

import (
	"context"
	"html/template"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/chroma/v2/lexers"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/transcript"
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
		html, ok := rendering().markdown(text)
		for i := range len(html) {
			if html[i] == '<' {
				require.Regexp(t, tag, string(html[i:min(len(html), i+2000)]))
			}
		}
		require.True(t, ok || len(text) > maxMarkersInLine, "only what is nested deeply is left as it is")
		require.Less(t, len(html), 4<<20, "little does not become much")
	})
}

func rendering() *texts { return &texts{context.Background(), math.MaxInt64} }

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
		_, ok := rendering().markdown(text)
		require.False(t, ok, text[:20])
	}
	for _, text := range []string{
		strings.Repeat("*a_ ", maxMarks), strings.Repeat("a**b", maxMarks+1), strings.Repeat("~~a ~", maxMarks), strings.Repeat("[", maxMarks+1), strings.Repeat("[a](", maxMarks),
		strings.Repeat("|a", 400) + "\n" + strings.Repeat("|-", 400) + "\n" + strings.Repeat("|\n", 400), "> - " + strings.Repeat("a|", 4000) + "\n> - " + strings.Repeat("-|", 4000) + "\n" + strings.Repeat("a\n", 400),
	} {
		text = text[:min(len(text), maxMarkup)]
		_, ok := rendering().markdown(text)
		require.False(t, ok, text[:20])
	}
	// What people write is rendered.
	for _, text := range []string{
		strings.Repeat("**a** and _b_ and [c](https://example.org)\n\n", 500), "|a|b|c|d|e|\n|-|-|-|-|-|\n" + strings.Repeat("|a|b|c|d|e|\n", 1000), strings.Repeat("- a\n", 5000), strings.Repeat("*", maxMarkup),
	} {
		_, ok := rendering().markdown(text)
		require.True(t, ok, text[:20])
	}
	html, ok := rendering().markdown(strings.Repeat("> ", maxMarkersInLine) + "a\n\n----------------------------------------\n")
	require.True(t, ok)
	require.Equal(t, maxMarkersInLine, strings.Count(string(html), "<blockquote>"))
}

// What is remembered is bounded, and the same text has the same HTML.
func TestCache(t *testing.T) {
	var c cache
	text := strings.Repeat("a", 1<<20)
	for i := range 64 {
		for range 2 {
			html, ok, known := c.get(string(rune(i)))
			if !known {
				html, ok = template.HTML(text), true
				c.put(string(rune(i)), html, ok)
			}
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

// Code of known languages is highlighted while there is time and somebody waits for it. What was not highlighted for want of
// time is the next time.
func TestHighlighting(t *testing.T) {
	defer func(d time.Duration) { codeTime = d }(codeTime)
	codeTime = time.Hour // the machine may be slow
	for language := range languages {
		require.NotNil(t, lexers.Get(language), language)
	}
	const code = "func f() {} // of TestHighlighting"
	const text = "```go\n" + code + "\n```"
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, r := range []*texts{{t.Context(), 0}, {t.Context(), 1}, {ended, math.MaxInt64}} {
		made, all := r.code("go", code)
		require.False(t, all)
		require.Equal(t, plainCode(code), made)
		made, ok := r.markdown(text)
		require.True(t, ok)
		require.NotContains(t, made, "k-kd")
	}
	r := rendering()
	made, ok := r.markdown(text)
	require.True(t, ok)
	require.Contains(t, made, `<span class="k-kd">func</span>`)
	require.Less(t, r.left, time.Duration(math.MaxInt64))
	for _, language := range []string{"", "nothing", "markdown", "go\x00", "../go"} {
		made, all := r.code(language, code)
		require.True(t, all)
		require.Equal(t, plainCode(code), made, language)
	}
}

// A command that a person gave is theirs, as in a log. What a program added is not.
func TestWhoGaveACommand(t *testing.T) {
	said := func(role, text string) *Message {
		m := &transcript.Message{ID: "m", Role: role, Body: []byte(text)}
		speaker, _ := transcript.Line(m)
		all := Messages(t.Context(), transcript.Items(m, transcript.Options{}), Options{})
		require.Len(t, all, 1)
		require.Equal(t, role, speaker)
		return all[0]
	}
	for _, role := range []string{"user", "system"} {
		m := said(role, "<command-name>/orchestrator</command-name>\n<command-args>the migration</command-args>")
		require.Equal(t, []string{role, role}, []string{m.Class, m.Who})
		require.Equal(t, "/orchestrator the migration", m.Blocks[0].Text)
	}
	require.Equal(t, "system", said("user", "<system-reminder>be brief</system-reminder>").Who)
}
