package transcript

import "strings"

// maxLine limits a line, in bytes.
const maxLine = 4096

// Start returns the start of a text in one line.
func Start(text string) string { return oneLine(text, maxLine) }

// oneLine returns the start of a text with its white space reduced to single spaces.
func oneLine(text string, longest int) string {
	cut := Options{MaxText: longest}
	start, left := cut.cut(text)
	line := strings.Join(strings.Fields(strings.ToValidUTF8(start, "\ufffd")), " ")
	if left > 0 {
		line += "…"
	}
	return line
}
