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
		passages = append(passages, i.passage())
	}
	return passages
}

// PassagesOf returns the texts of a message as they are shown, with what calls ran and what came out. Data is left out.
func PassagesOf(m *Message) (passages []Passage) {
	for _, i := range Items(m, Options{}) {
		switch i.Kind {
		case Data, File, Note, Mark:
		case Call:
			passages = append(passages, Passage{Text: i.Call.Text})
		case Result:
			passages = append(passages, Passage{Text: i.Result.Text})
		default:
			passages = append(passages, i.passage())
		}
	}
	return passages
}

// passage returns the text of an item. Instructions are without the tags of their elements.
func (i *Item) passage() Passage {
	switch i.Kind {
	case Reminder:
		return Passage{Text: i.Text, Label: i.label()}
	case Instruction:
		return Passage{Text: untagged(i.Text)}
	}
	return Passage{Text: i.Text}
}

// label returns the name of a reminder, before its text.
func (i *Item) label() string { return "(" + cmp.Or(i.Tag, "reminder") + ") " }
