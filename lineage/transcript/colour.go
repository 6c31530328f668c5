package transcript

import "strings"

// Uncoloured returns a text without the sequences with which programs set colours and styles (SGR), and those that clear the
// rest of a line, which go with them. Other sequences stay. A sequence that the end of the text cuts off is left out.
func Uncoloured(text string) string {
	at := strings.Index(text, "\x1b[")
	if at < 0 {
		return text
	}
	var b strings.Builder
	for ; at >= 0; at = strings.Index(text, "\x1b[") {
		end := at + len("\x1b[")
		for end < len(text) && (text[end] >= '0' && text[end] <= '9' || text[end] == ';' || text[end] == ':') {
			end++
		}
		b.WriteString(text[:at])
		switch {
		case end == len(text):
		case text[end] == 'm', text[end] == 'K':
			end++
		default:
			b.WriteString(text[at:end])
		}
		text = text[end:]
	}
	b.WriteString(text)
	return b.String()
}
