package engine

import "strings"

// Text returns the text parts of the message, joined without separators.
func (m UIMessage) Text() string {
	var b strings.Builder
	for _, p := range m.Parts {
		if p.Type == PartText {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}
