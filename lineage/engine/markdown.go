package engine

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// MarkdownRenderer renders fragments as CommonMark: a heading for each top-level name, which groups
// the fragments with that name, and nested lists below.
//
// Text is shown literally: in a single line, special characters are escaped; text with line breaks
// or surrounding space is put in a fenced block that it cannot close. CRLF becomes LF, and other
// control characters become their Unicode pictures. The empty string, list and object are `""`,
// `[]` and `{}` in code. [Raw] text is Markdown and written unchanged.
type MarkdownRenderer struct {
	// TitleCase writes names as titles: system_prompt as System Prompt.
	TitleCase bool
}

// Render implements Renderer.
func (r MarkdownRenderer) Render(fragments ...Fragment) (string, error) {
	doc, err := document(fragments)
	if err != nil {
		return "", err
	}
	w := markdownWriter{titles: r.TitleCase}
	for i, n := range doc.grouped() {
		if i > 0 {
			w.b.WriteString("\n\n")
		}
		w.b.WriteString("## " + w.name(n.name) + "\n\n")
		if n.isScalar() || len(n.children) == 0 {
			w.value(n, 0)
		} else {
			w.items(n, 0)
		}
	}
	return w.b.String(), nil
}

type markdownWriter struct {
	b      strings.Builder
	titles bool
}

func (w *markdownWriter) name(name string) string {
	if w.titles {
		name = titleCase(name)
	}
	return markdownName(name)
}

// items writes a list or object as bullets. The first begins at the current position.
func (w *markdownWriter) items(n *node, level int) {
	for i, c := range n.children {
		if i > 0 {
			w.b.WriteString("\n" + indent(level))
		}
		w.b.WriteString("-")
		if c.named {
			w.b.WriteString(" **" + w.name(c.name) + "**:")
		}
		if c.named && isBlock(c) {
			w.b.WriteString("\n" + indent(level+1))
		} else {
			w.b.WriteByte(' ')
		}
		if c.isScalar() || len(c.children) == 0 {
			w.value(c, level+1)
		} else {
			w.items(c, level+1)
		}
	}
}

// isBlock reports whether n needs separate lines.
func isBlock(n *node) bool {
	if n.kind == textNode {
		return n.text != "" && (n.raw || !fitsLine(n.text))
	}
	return len(n.children) > 0
}

// value writes a scalar or an empty value. Further lines are indented to level.
func (w *markdownWriter) value(n *node, level int) {
	text := strings.ReplaceAll(n.text, "\r\n", "\n")
	switch {
	case n.kind == listKind:
		w.b.WriteString("`[]`")
	case n.kind == objectKind:
		w.b.WriteString("`{}`")
	case n.kind != textNode:
		w.b.WriteString(text)
	case text == "":
		w.b.WriteString("`\"\"`")
	case n.raw:
		w.lines(text, level)
	case fitsLine(text):
		w.b.WriteString(escapeMarkdown(text))
	default:
		fence := strings.Repeat("`", max(3, longestRun(text, '`')+1))
		w.lines(fence+"text\n"+text+"\n"+fence, level)
	}
}

// lines writes lines, indented to stay inside their list item.
func (w *markdownWriter) lines(text string, level int) {
	for i, line := range strings.Split(text, "\n") {
		if i > 0 {
			w.b.WriteByte('\n')
			if line != "" {
				w.b.WriteString(indent(level))
			}
		}
		w.b.WriteString(strings.Map(visible, line))
	}
}

// fitsLine reports whether text can be written in a single line without loss.
func fitsLine(text string) bool {
	if text == "" || strings.Contains(text, "\n") {
		return false
	}
	first, _ := utf8.DecodeRuneInString(text)
	last, _ := utf8.DecodeLastRuneInString(text)
	return !unicode.IsSpace(first) && !unicode.IsSpace(last)
}

func longestRun(text string, c rune) int {
	longest, run := 0, 0
	for _, r := range text {
		if r != c {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}

// visible keeps tabs and shows other control characters.
func visible(r rune) rune {
	if r == '\t' {
		return r
	}
	return controlPicture(r)
}

// markdownName returns a name for a heading or between asterisks. It is quoted if it would not be
// fully visible.
func markdownName(name string) string {
	if !fitsLine(name) || name[0] == '"' {
		name = `"` + name + `"`
	}
	return escapeMarkdown(name)
}

// escapeMarkdown returns text in one line, with markup characters escaped.
func escapeMarkdown(text string) string {
	runes := []rune(strings.Map(visible, text))
	digits := 0
	for digits < len(runes) && unicode.IsDigit(runes[digits]) {
		digits++
	}
	var b strings.Builder
	for i, r := range runes {
		escape := false
		switch r {
		case '\\', '`', '*', '[', ']', '<', '&', '~', '|':
			escape = true
		case '_':
			escape = !between(runes, i)
		case '#', '>', '+', '-', '=':
			escape = i == 0 || r == '#' && i == len(runes)-1
		case '.', ')':
			escape = i > 0 && i == digits
		}
		if escape {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// between reports whether the rune at i is inside a word.
func between(runes []rune, i int) bool {
	isWord := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	return i > 0 && i < len(runes)-1 && isWord(runes[i-1]) && isWord(runes[i+1])
}
