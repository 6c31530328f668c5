package resume

import (
	"bytes"
	"context"
	"iter"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/follow"
)

// ownLines are the lines of an agent's session with which a history begins.
type ownLines struct {
	// source is the file of the lines, nil for bodies of messages.
	source *follow.Source
	all    linesOf
	tree   bool // lines state their parents
	lines  []ownLine
	// lineOf maps the spans of the history to their lines, as far as there are lines.
	lineOf []int
	// upTo is the number of spans that are written with these lines. keep tells for each line whether it is written.
	upTo int
	keep []bool
}

// linesOf yields lines with the messages and records read from them.
type linesOf func(ctx context.Context) iter.Seq2[follow.SourceLine, error]

// ownLine describes a line of a session.
type ownLine struct {
	// first and last are the indexes in the history of the line's messages, -1 if it has none.
	first, last int
	// isMessage is set if the line is a message. others is the number of its messages and records that are not in the
	// history. beside is the number of these that are records of the line itself.
	isMessage      bool
	others, beside int
	// follows is set if the line belongs to the previous message.
	follows    bool
	id, parent string
}

// cut limits the lines to those of at most n spans of the history, and reports whether any are left.
func (o *ownLines) cut(n int) bool {
	covered, end := 0, -1 // end is the line on which the kept spans end
	o.upTo = 0
	for most := -1; covered < n && o.lineOf[covered] >= 0; covered++ {
		at := o.lineOf[covered]
		l := &o.lines[at]
		if most = max(most, at); at == most && l.last == covered && l.others <= l.beside {
			o.upTo, end = covered+1, at
		}
	}
	if o.upTo == 0 {
		return false
	}
	o.keep = make([]bool, end+1, len(o.lines))
	if o.tree {
		o.keepTree()
		return true
	}
	for i := range o.keep {
		o.keep[i] = true
	}
	for end++; end < len(o.lines) && o.lines[end].follows; end++ {
		o.keep = append(o.keep, true)
	}
	return true
}

// keepTree keeps the messages of the history, the records that connect them, and records without an id.
func (o *ownLines) keepTree() {
	byID := make(map[string]int, len(o.keep))
	for i := range o.keep {
		if id := o.lines[i].id; id != "" {
			if _, ok := byID[id]; !ok {
				byID[id] = i
			}
		}
	}
	for i := range o.keep {
		l := &o.lines[i]
		if !l.isMessage && l.id == "" {
			o.keep[i] = true
		}
		if !l.isMessage || !o.within(i) {
			continue
		}
		for at := i; !o.keep[at]; {
			o.keep[at] = true
			above, ok := byID[o.lines[at].parent]
			if !ok || above >= at || o.lines[above].isMessage && !o.within(above) {
				break
			}
			at = above
		}
	}
}

// within reports whether the messages on a line are in the part of the history that is kept.
func (o *ownLines) within(line int) bool {
	l := &o.lines[line]
	return l.last >= 0 && l.last < o.upTo && l.others <= l.beside
}

// each calls visit for each kept line, without its line end. Lines that are not JSON objects are left out.
func (o *ownLines) each(ctx context.Context, visit func(raw []byte) error) error {
	n := 0
	for line, err := range o.all(ctx) {
		switch {
		case err != nil:
			return err
		case n >= len(o.keep):
			return nil
		case o.keep[n]:
			if raw := bytes.TrimSpace(line.Raw); rawjson.Valid(raw) && rawjson.IsObject(raw) {
				if err := visit(raw); err != nil {
					return err
				}
			}
		}
		n++
	}
	if n < len(o.keep) {
		return errChanged
	}
	return nil
}

// ambiguous reports whether an object has a key twice.
func ambiguous(raw []byte) bool {
	keys := make(map[string]bool)
	for m := range rawjson.Members(raw) {
		if keys[m.Key] {
			return true
		}
		keys[m.Key] = true
	}
	return false
}
