package engine

import (
	"fmt"
	"strings"
)

// Renderer turns fragments into a system prompt.
//
// All renderers of this package have the following in common. The same fragments give the same
// bytes. Messages and nil values are omitted at any depth; an object without remaining members is
// shown as empty. -0 is 0. Invalid UTF-8 is replaced by U+FFFD. There is no final newline, and the
// result for no fragments is empty. Data that cannot be rendered is a *DataError. A Renderer may be
// used concurrently.
type Renderer interface {
	Render(fragments ...Fragment) (string, error)
}

// controlPicture returns the visible symbol of a C0 control character or DEL, or else r.
func controlPicture(r rune) rune {
	switch {
	case r < ' ':
		return '\u2400' + r
	case r == 0x7f:
		return '\u2421'
	}
	return r
}

// quoted returns text between double quotes. control is the format of control characters without a
// short escape.
func quoted(text, control string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		b.WriteString(escaped(r, control))
	}
	b.WriteByte('"')
	return b.String()
}

// escaped returns a character as quoted writes it.
func escaped(r rune, control string) string {
	switch {
	case r == '"' || r == '\\':
		return `\` + string(r)
	case r == '\n':
		return `\n`
	case r == '\r':
		return `\r`
	case r == '\t':
		return `\t`
	case r < ' ' || r == 0x7f:
		return fmt.Sprintf(control, r)
	}
	return string(r)
}

// indent returns the indentation of a level.
func indent(level int) string { return strings.Repeat("  ", level) }
