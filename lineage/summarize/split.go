package summarize

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/lineage-store/lineage/internal/amount"
)

// maxSentence is the maximum length of a quoted sentence in bytes.
const maxSentence = 400

// split splits a cleaned text into sentences. Lines and list items are separate sentences. A code
// block becomes a note with its size after the preceding sentence, and its first line that reports
// a failure is quoted. Other sentences are substrings of the text, apart from the mark for
// truncation.
func split(text string) []string {
	var out []string
	var code *codeBlock
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case code != nil && code.closedBy(line):
			out, code = code.appendTo(out), nil
		case code != nil:
			code.add(line)
		default:
			if code = openBlock(line); code != nil {
				continue
			}
			for line = unmark(line); line != ""; {
				var s string
				s, line = cutSentence(line)
				out = append(out, clip(s))
			}
		}
	}
	if code != nil {
		out = code.appendTo(out)
	}
	return out
}

// codeBlock is a fenced code block.
type codeBlock struct {
	fence   string
	lines   int
	failure string // first line that reports a failure
}

// openBlock returns the block that a line opens, nil for a line of text.
func openBlock(line string) *codeBlock {
	for _, mark := range []string{"`", "~"} {
		rest := strings.TrimLeft(line, mark)
		if n := len(line) - len(rest); n >= 3 && !strings.Contains(rest, "`") {
			return &codeBlock{fence: line[:n]}
		}
	}
	return nil
}

func (b *codeBlock) closedBy(line string) bool {
	return strings.HasPrefix(line, b.fence) && strings.Trim(line, b.fence[:1]) == ""
}

func (b *codeBlock) add(line string) {
	b.lines++
	if b.failure == "" && len(line) <= maxSentence && slices.ContainsFunc(words(line), func(w string) bool { return failures[w] }) {
		b.failure = line
	}
}

func (b *codeBlock) appendTo(sentences []string) []string {
	if b.lines == 0 {
		return sentences
	}
	note := "[" + amount.Plural(b.lines, "line") + " of code]"
	if last := len(sentences) - 1; last >= 0 && !strings.HasSuffix(sentences[last], " of code]") {
		sentences[last] += " " + note
	} else {
		sentences = append(sentences, note)
	}
	if b.failure != "" {
		sentences = append(sentences, b.failure)
	}
	return sentences
}

// unmark removes the markup of headings, quotes and lists from a line. Signs and options stay, as
// they have no space after them.
func unmark(line string) string {
	for {
		mark, rest, spaced := strings.Cut(line, " ")
		switch {
		case mark != "" && strings.Trim(mark, "#>*-+•|=_") == "": // or the line is nothing else
		case spaced && len(mark) <= 4 && strings.Trim(mark[:len(mark)-1], "0123456789") == "" && strings.ContainsAny(mark[len(mark)-1:], ".)"):
		default:
			return line
		}
		line = strings.TrimSpace(rest)
	}
}

// cutSentence returns the first sentence of a line and the rest. A full stop ends a sentence only
// before a space and a capital letter or similar, and not after a possible abbreviation or German
// ordinal. So v1.2 and e.g. are not split.
func cutSentence(line string) (first, rest string) {
	for i, r := range line {
		if !strings.ContainsRune(".!?。！？", r) {
			continue
		}
		end := i + utf8.RuneLen(r)
		if r > unicode.MaxASCII {
			tail := strings.TrimLeft(line[end:], "”』」）)")
			return line[:len(line)-len(tail)], strings.TrimSpace(tail)
		}
		tail := strings.TrimLeft(line[end:], `"')]*`)
		next := strings.TrimLeft(tail, " ")
		if next == "" || next == tail {
			continue
		}
		if after, _ := utf8.DecodeRuneInString(next); unicode.IsLower(after) || r == '.' && abbreviated(line[:i]) {
			continue
		}
		return line[:len(line)-len(tail)], strings.TrimSpace(next)
	}
	return line, ""
}

// abbreviated reports whether the text before a full stop ends in something that usually continues:
// a letter, the number of a day or month, a title.
func abbreviated(text string) bool {
	tail := text[max(0, len(text)-8):]
	word := tail[strings.LastIndexAny(tail, " .(")+1:]
	if len(word) == len(tail) && len(tail) < len(text) {
		return false // longer than any abbreviation
	}
	letters := strings.TrimFunc(word, unicode.IsDigit) != ""
	return !letters && len(word) <= 2 || letters && utf8.RuneCountInString(word) == 1 || abbreviations[strings.ToLower(word)]
}

// clip truncates a sentence that is too long to quote, at a space if possible.
func clip(s string) string {
	if len(s) <= maxSentence {
		return s
	}
	s = strings.ToValidUTF8(s[:maxSentence], "")
	if space := strings.LastIndexByte(s, ' '); space > maxSentence/2 {
		s = s[:space]
	}
	return strings.TrimSpace(s) + "…"
}
