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
	// upTo is the number of spans that are written with these lines. keep has for each line whether it is written.
	upTo int
	keep []bool
}

// linesOf yields lines with the messages and records read from them.
type linesOf func(ctx context.Context) iter.Seq2[follow.SourceLine, error]

// ownLine describes a line of a session.
type ownLine struct {
	// last is the index in the history of the line's last message, -1 if it has none.
	last int
	// isMessage is set if the line is a message. others is the number of its messages and records that are not in the
	// history. beside is the number of these that are records of the line itself.
	isMessage      bool
	others, beside int
	// follows is set if the line belongs to the previous message.
	follows    bool
	id, parent string
}

// isComplete reports whether the history has all messages of the line.
func (l *ownLine) isComplete() bool { return l.others <= l.beside }

// cut limits the lines to those of at most n spans of the history, and reports whether any are left.
func (o *ownLines) cut(n int) bool {
	end := o.cover(n)
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
	for next := end + 1; next < len(o.lines) && o.lines[next].follows; next++ {
		o.keep = append(o.keep, true)
	}
	return true
}

// cover sets upTo to the largest number of spans, at most n, with which the history begins and that complete lines have in its
// order. It returns the line with the last of these spans.
func (o *ownLines) cover(n int) (end int) {
	o.upTo = 0
	last := 0 // line of the spans before this one
	for span := 0; span < n && o.lineOf[span] >= 0; span++ {
		at := o.lineOf[span]
		if at < last {
			continue
		}
		last = at
		if l := &o.lines[at]; l.last == span && l.isComplete() {
			o.upTo, end = span+1, at
		}
	}
	return end
}

// keepTree keeps the messages of the history, the records that connect them, and records without an id.
func (o *ownLines) keepTree() {
	byID := make(map[string]int, len(o.keep)) // the first line with each id
	for i := range o.keep {
		if id := o.lines[i].id; id != "" {
			if _, ok := byID[id]; !ok {
				byID[id] = i
			}
		}
	}
	for i := range o.keep {
		switch l := &o.lines[i]; {
		case l.isMessage && o.within(i):
			o.keepWithParents(i, byID)
		case !l.isMessage && l.id == "":
			o.keep[i] = true
		}
	}
}

// keepWithParents keeps a line and the lines above it, up to a message of another history.
func (o *ownLines) keepWithParents(at int, byID map[string]int) {
	for !o.keep[at] {
		o.keep[at] = true
		above, ok := byID[o.lines[at].parent]
		if !ok || above >= at || o.lines[above].isMessage && !o.within(above) {
			return
		}
		at = above
	}
}

// within reports whether the messages on a line are in the part of the history that is kept.
func (o *ownLines) within(line int) bool {
	l := &o.lines[line]
	return l.last >= 0 && l.last < o.upTo && l.isComplete()
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
