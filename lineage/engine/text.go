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

// SearchText returns what a search should find the message by, one line or more
// for each: text and reasoning, names and titles of files and sources, and what
// tools were given, answered or failed with. Of JSON that is its strings, never
// its keys.
func (m UIMessage) SearchText() string {
	var found []string
	add := func(text string) {
		if strings.TrimSpace(text) != "" {
			found = append(found, text)
		}
	}
	for _, p := range m.Parts {
		add(p.Text)
		add(p.Filename)
		add(p.Title)
		if _, ok := p.Tool(); ok {
			eachString(p.Input, add)
			eachString(p.Output, add)
			add(p.ErrorText)
		}
	}
	return strings.Join(found, "\n")
}
