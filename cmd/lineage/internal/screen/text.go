package screen

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/lineage-store/lineage/internal/plain"
)

// Width returns the width of a text in columns on one line.
func Width(text string) int {
	n := 0
	for _, r := range text {
		n += runeWidth(r)
	}
	return n
}

func runeWidth(r rune) int {
	switch {
	case r < ' ' || unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case isWide(r):
		return 2
	}
	return 1
}

// isWide reports whether terminals show a character in two columns: East Asian scripts and pictures.
func isWide(r rune) bool {
	return r >= 0x1100 && (r <= 0x115f ||
		r >= 0x2e80 && r <= 0x303e || r >= 0x3041 && r <= 0xa4cf ||
		r >= 0xac00 && r <= 0xd7a3 || r >= 0xf900 && r <= 0xfaff ||
		r >= 0xfe30 && r <= 0xfe6f || r >= 0xff00 && r <= 0xff60 || r >= 0xffe0 && r <= 0xffe6 ||
		r >= 0x1f300 && r <= 0x1f64f || r >= 0x1f680 && r <= 0x1f6ff || r >= 0x1f900 && r <= 0x1f9ff ||
		r >= 0x20000 && r <= 0x3fffd)
}

// Line returns a text as one line: see plain.Line.
func Line(text string) string { return plain.Line(text) }

// Cut returns a text of at most width columns. A longer text is cut and gets an ellipsis. A width of 0 or less means
// no limit.
func Cut(text string, width int) string {
	if width <= 0 || Width(text) <= width {
		return text
	}
	n := 0
	for i, r := range text {
		if n += runeWidth(r); n > width-1 {
			return text[:i] + "…"
		}
	}
	return text
}

// CutMiddle returns a text of at most width columns. A longer text, such as a path, gets an ellipsis for its middle.
func CutMiddle(text string, width int) string {
	if width <= 0 || Width(text) <= width {
		return text
	}
	start := Cut(text, width/2+1)
	end, left := len(text), width-Width(start)
	for end > 0 {
		r, size := utf8.DecodeLastRuneInString(text[:end])
		if left -= runeWidth(r); left < 0 {
			break
		}
		end -= size
	}
	return start + text[end:]
}

// Pad returns a text with spaces after it up to width columns.
func Pad(text string, width int) string {
	if n := width - Width(text); n > 0 {
		return text + strings.Repeat(" ", n)
	}
	return text
}

// Wrap splits a text into lines of at most width columns, between words if possible. A width of 0 or less means no
// limit.
func Wrap(text string, width int) []string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if width <= 0 {
		return lines
	}
	var wrapped []string
	for _, line := range lines {
		for Width(line) > width {
			at := breakAt(line, width)
			wrapped = append(wrapped, strings.TrimRight(line[:at], " "))
			line = strings.TrimLeft(line[at:], " ")
		}
		wrapped = append(wrapped, line)
	}
	return wrapped
}

// breakAt returns the index at which to break a line that is wider than width.
func breakAt(line string, width int) int {
	n, space := 0, 0
	for i, r := range line {
		if r == ' ' && i > 0 {
			space = i
		}
		if n += runeWidth(r); n > width {
			switch {
			case space > 0:
				return space
			case i > 0:
				return i
			}
			return utf8.RuneLen(r)
		}
	}
	return len(line)
}
