// Package screen writes text for people. It knows the width of a terminal, whether it shows colours, and the width of
// a text.
package screen

import (
	"io"
	"os"
	"strconv"

	"golang.org/x/term"
)

// Screen is an output for people.
type Screen struct {
	W *Sanitizer
	// Terminal is set if the output is a terminal.
	Terminal bool
	// Width is the number of columns, 0 for no limit.
	Width int
	// Colour is set when styles are shown.
	Colour bool
}

// Of returns the screen for w. COLUMNS is its width, else that of the terminal. Only a terminal has colours; NO_COLOR and
// TERM=dumb turn them off.
func Of(w io.Writer, getenv func(string) string) *Screen {
	s := &Screen{W: NewSanitizer(w)}
	if n, err := strconv.Atoi(getenv("COLUMNS")); err == nil && n > 0 {
		s.Width = n
	}
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return s
	}
	s.Terminal = true
	if s.Width == 0 {
		s.Width = 80
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			s.Width = width
		}
	}
	s.Colour = getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
	return s
}

// Style is a colour or emphasis of a text.
type Style string

// The styles.
const (
	Plain  Style = ""
	Bold   Style = "1"
	Dim    Style = "2"
	Red    Style = "31"
	Green  Style = "32"
	Yellow Style = "33"
	Blue   Style = "34"
	Purple Style = "35"
	Cyan   Style = "36"
)

// Paint returns the text in a style, if the screen shows it.
func (s *Screen) Paint(style Style, text string) string {
	if !s.Colour || style == Plain || text == "" {
		return text
	}
	return control("\x1b["+string(style)+"m") + text + control("\x1b[0m")
}

// OfRole returns the style of messages of a role.
func OfRole(role string) Style {
	switch role {
	case "user":
		return Green
	case "assistant":
		return Cyan
	case "system", "developer":
		return Purple
	case "tool", "function":
		return Yellow
	}
	return Blue
}
