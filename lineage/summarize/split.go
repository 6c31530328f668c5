package summarize

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// longest is how many bytes of a sentence are quoted at most.
const longest = 400

// split cuts a clean text into sentences. List items and lines stand by
// themselves. A block of code becomes a note of its size behind the sentence
// before it, and its first line that tells of a failure is quoted. What is not a
// note stands in the text, but for the mark that it was cut short.
func split(text string) []string {
	var out []string
	var code *block
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

// block is a fenced block of code.
type block struct {
	fence   string
	lines   int
	failure string // its first line that tells of one
}

// openBlock returns the block that a line opens, nil if it is a line of text.
func openBlock(line string) *block {
	for _, mark := range []string{"`", "~"} {
		rest := strings.TrimLeft(line, mark)
		if n := len(line) - len(rest); n >= 3 && !strings.Contains(rest, "`") {
			return &block{fence: line[:n]}
		}
	}
	return nil
}

func (b *block) closedBy(line string) bool {
	return strings.HasPrefix(line, b.fence) && strings.Trim(line, b.fence[:1]) == ""
}

func (b *block) add(line string) {
	b.lines++
	if b.failure != "" || len(line) > longest {
		return
	}
	for _, word := range words(line) {
		if failures[word] {
			b.failure = line
			return
		}
	}
}

func (b *block) appendTo(sentences []string) []string {
	if b.lines == 0 {
		return sentences
	}
	note := fmt.Sprintf("[%d lines of code]", b.lines)
	if b.lines == 1 {
		note = "[1 line of code]"
	}
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

// unmark takes the marks of headings, quotes and lists off a line. A sign or an
// option, which have no space behind them, stay.
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

// cutSentence returns the first sentence of a line and the rest. A full stop ends
// one only before a space and a capital or the like, so that v1.2 and e.g. do not,
// and not after what may be an abbreviation or a German ordinal.
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
		return line[:len(line)-len(tail)], next
	}
	return line, ""
}

// abbreviated reports that the text before a full stop ends in what usually goes
// on behind one: a letter, a number of a day or a month, a title.
func abbreviated(text string) bool {
	tail := text[max(0, len(text)-8):]
	word := tail[strings.LastIndexAny(tail, " .(")+1:]
	if len(word) == len(tail) && len(tail) < len(text) {
		return false // it is longer than any
	}
	letters := strings.TrimFunc(word, unicode.IsDigit) != ""
	return !letters && len(word) <= 2 || letters && utf8.RuneCountInString(word) == 1 || abbreviations[strings.ToLower(word)]
}

// clip shortens a sentence that is too long to quote, at a space if there is one.
func clip(s string) string {
	if len(s) <= longest {
		return s
	}
	cut := longest
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	if space := strings.LastIndexByte(s[:cut], ' '); space > longest/2 {
		cut = space
	}
	return strings.TrimSpace(s[:cut]) + "…"
}
