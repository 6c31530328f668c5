package engine

import "strings"

// Renderer turns fragments into a system prompt.
//
// The renderers of this package agree on the following. The same fragments give
// the same bytes. Messages, and whatever is nil, are left out wherever they are;
// an object left empty by that is shown as empty. Text that is not valid UTF-8
// has the offending bytes replaced by U+FFFD. There is no newline at the end,
// and nothing at all for no fragments. Data that cannot be rendered is refused
// with a *DataError. A Renderer may be used concurrently.
type Renderer interface {
	Render(fragments ...Fragment) (string, error)
}

// controlPicture returns the visible stand-in for a C0 control character or DEL,
// and r itself for any other.
func controlPicture(r rune) rune {
	switch {
	case r < ' ':
		return '\u2400' + r
	case r == 0x7f:
		return '\u2421'
	}
	return r
}

// indent returns the space before a line at a level.
func indent(level int) string { return strings.Repeat("  ", level) }
