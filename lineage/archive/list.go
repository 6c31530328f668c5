package archive

import "github.com/lineage-store/lineage/internal/scratch"

// List joins values of an input, each valid JSON, to a list that is read as one item. It must be closed.
type List struct {
	in   *Input
	text scratch.TextWriter
}

// NewList returns an empty list.
func (in *Input) NewList() *List {
	return &List{in: in, text: scratch.TextWriter{Most: in.inMemory}}
}

// Size returns the size of the list in bytes, 0 if it is empty.
func (l *List) Size() int64 { return int64(l.text.Len()) }

// Add adds a value.
func (l *List) Add(value []byte) {
	before := ","
	if l.text.Len() == 0 {
		before = "["
	}
	l.text.Write([]byte(before))
	l.text.Write(value)
}

// Item returns the list, and ends it.
func (l *List) Item() (Item, error) {
	l.text.Write([]byte("]"))
	text, err := l.text.Text()
	at := Position{File: l.in.place()}
	if err != nil {
		return Item{}, l.in.Unreadable(at, err)
	}
	return Item{Raw: text.Bytes(), At: at, text: text}, nil
}

// Close removes what the list had.
func (l *List) Close() { l.text.Close() }
