package summarize

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestSplit(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"sentences", "One thing. Another thing! A third? Yes.", []string{"One thing.", "Another thing!", "A third?", "Yes."}},
		{"full stops inside", "Use v1.2 of go.mod, e.g. the tag. See example.com.", []string{"Use v1.2 of go.mod, e.g. the tag.", "See example.com."}},
		{"abbreviations", "Ask Dr. Brandt. We need z. B. Herrn Meier.", []string{"Ask Dr. Brandt.", "We need z. B. Herrn Meier."}},
		{"ordinals", "Bis zum 15. März fertig. Danach Pause.", []string{"Bis zum 15. März fertig.", "Danach Pause."}},
		{"a year at the end", "It was 2024. Then came 2025.", []string{"It was 2024.", "Then came 2025."}},
		{"quotes", `He said "stop." Then he left. (Really.) Gone.`, []string{`He said "stop."`, "Then he left.", "(Really.)", "Gone."}},
		{"wide punctuation", "你好！现在开始。“好。”结束", []string{"你好！", "现在开始。", "“好。”", "结束"}},
		{"lists", "# Plan\n- first\n* second\n1. third\n2) fourth\n> quoted\n> - deep", []string{"Plan", "first", "second", "third", "fourth", "quoted", "deep"}},
		{"signs and options stay", "-5 degrees\n--verbose\n#42\n2024 was", []string{"-5 degrees", "--verbose", "#42", "2024 was"}},
		{"rules", "Above\n---\n***\n===\n| --- | --- |\nBelow", []string{"Above", "Below"}},
		{"code", "Run this:\n```go\na\nb\n```\nDone.", []string{"Run this: [2 lines of code]", "Done."}},
		{"one line of code", "Run this:\n~~~\na\n~~~", []string{"Run this: [1 line of code]"}},
		{"only code", "```\na\n```", []string{"[1 line of code]"}},
		{"empty code", "Here:\n```\n```\nDone.", []string{"Here:", "Done."}},
		{"blocks of code", "Here:\n```\na\n```\n```\nb\n```", []string{"Here: [1 line of code]", "[1 line of code]"}},
		{"open code", "Here:\n```\na\nb", []string{"Here: [2 lines of code]"}},
		{"code in code", "Here:\n````md\n```\na\n```\n````\nDone.", []string{"Here: [3 lines of code]", "Done."}},
		{"another fence does not close", "Here:\n```\n~~~\n```go\n```\nDone.", []string{"Here: [2 lines of code]", "Done."}},
		{"a fence in a line", "```make test``` fails here", []string{"```make test``` fails here"}},
		{"failures in code", "It fails:\n```\n$ make\npanic: nil map\nerror: 2\n```\nWhy?", []string{"It fails: [3 lines of code]", "panic: nil map", "Why?"}},
		{"nothing", " \n\n \n", nil},
	} {
		t.Run(tt.name, func(t *testing.T) { require.Equal(t, tt.want, split(tt.text)) })
	}
}

func TestClip(t *testing.T) {
	require.Equal(t, strings.Repeat("x", maxSentence), clip(strings.Repeat("x", maxSentence)))
	require.Equal(t, strings.Repeat("x", maxSentence)+"…", clip(strings.Repeat("x", maxSentence+1)))
	require.Equal(t, strings.Repeat("é", maxSentence/2)+"…", clip(strings.Repeat("é", maxSentence)))
	require.Equal(t, strings.Repeat("汉", maxSentence/3)+"…", clip(strings.Repeat("汉", maxSentence)))
	require.Equal(t, strings.Repeat("x", 300)+"…", clip(strings.Repeat("x", 300)+" "+strings.Repeat("y", 300)))
}

func TestWords(t *testing.T) {
	require.Equal(t, []string{"pool_size", "raised", "64"}, words("The pool_size was raised to 64!"))
	require.Equal(t, []string{"预算", "算是"}, words("预算是"))
	require.Equal(t, []string{"straße", "müller's"}, words("Die Straße: Müller's"))
	require.Empty(t, words("I don't… — !?"))
}

var note = regexp.MustCompile(`^(.*?) ?\[(1 line|\d+ lines) of code\]$`)

// requireQuotes requires that the results of split are in the text.
func requireQuotes(t require.TestingT, text string) {
	text = excerpt(text)
	require.True(t, utf8.ValidString(text))
	for _, s := range split(text) {
		require.NotEmpty(t, s)
		require.True(t, utf8.ValidString(s))
		require.NotContains(t, s, "\n")
		if !strings.Contains(text, s) {
			s = note.ReplaceAllString(s, "$1")
		}
		require.LessOrEqual(t, len(s), maxSentence+len("…"))
		if !strings.Contains(text, s) {
			s = strings.TrimSuffix(s, "…")
		}
		require.Contains(t, text, s)
	}
}

func TestSplitQuotes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { requireQuotes(t, hostile().Draw(t, "text")) })
}

func FuzzSplit(f *testing.F) {
	for _, seed := range []string{
		"", "One. Two.", "你好！现在。", "```go\na\n```", "~~~\n```", "- a\n1. b", "panic: x", "\xff\x80\x00", "Dr. X. 15. Y.",
		strings.Repeat("\x80", maxSentence+10), "x.\n```\nerror\n", `"'.)] A`, "[1 line of code]\n```\na",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		requireQuotes(t, text)
		words(text)
	})
}
