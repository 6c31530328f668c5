package transcript

import "cmp"

// Passage is a part of a text: what somebody wrote, or what a program added.
type Passage struct {
	Text string
	// Label is empty for what somebody wrote, else the name of the addition: "(environment_context) ".
	Label string
}

// Passages divides a text of a message, of a role and with the metadata of the message, as [Items] does.
func Passages(role, text string, metadata []byte) (passages []Passage) {
	r := reader{m: &Message{Role: role}, meta: flagsOf(metadata)}
	r.text(role, text)
	for _, i := range r.items {
		p := Passage{Text: i.Text}
		if i.Kind == Reminder {
			p.Label = i.label()
		}
		passages = append(passages, p)
	}
	return passages
}

// label returns the name of a reminder, before its text.
func (i *Item) label() string { return "(" + cmp.Or(i.Tag, "reminder") + ") " }
