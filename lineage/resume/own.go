package resume

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/follow"
)

// ownLines are the lines of an agent's session with which a history begins.
type ownLines struct {
	// source is the file of the lines, nil for bodies of messages.
	source *follow.Source
	all    linesOf
	target *target
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
	// said is set if the line is a message. others is the number of its messages and records that are not in the
	// history. beside is the number of these that are records of the line itself.
	said           bool
	others, beside int
	// follows is set if the line belongs to the previous message.
	follows    bool
	id, parent string
}

// findOwn returns the agent's own lines with which a history begins, nil if there are none.
func findOwn(ctx context.Context, h *history, t *target, agent follow.Agent, a about) (*ownLines, error) {
	if t.line == nil {
		return nil, nil
	}
	if t.stored != nil {
		o, err := matchOwn(ctx, func(ctx context.Context) iter.Seq2[follow.SourceLine, error] { return h.stored(ctx, t.stored) }, h, t)
		switch {
		case notUsable(err):
			return nil, nil
		case err != nil || !o.cut(len(h.spans)):
			return nil, err
		}
		return o, nil
	}
	sources, err := h.sources(ctx, a)
	if err != nil {
		return nil, err
	}
	sources = slices.DeleteFunc(sources, func(s *follow.Source) bool { return s.About.Agent != "" && s.About.Agent != agent.Name })
	return bestOwn(ctx, h, t, sources)
}

// bestOwn returns the lines of the source that has most of the history.
func bestOwn(ctx context.Context, h *history, t *target, sources []*follow.Source) (best *ownLines, err error) {
	for _, source := range sources {
		o, err := matchOwn(ctx, source.Lines, h, t)
		switch {
		case notUsable(err):
		case err != nil:
			return nil, err
		case o.cut(len(h.spans)) && (best == nil || o.upTo > best.upTo):
			best = o
			best.source = source
		}
	}
	return best, nil
}

// notUsable reports whether the lines of a source cannot be used, so that the messages must be translated.
func notUsable(err error) bool {
	for _, is := range []error{follow.ErrNotExact, lineage.ErrErased, lineage.ErrNotFound, lineage.ErrCorrupt, errElsewhere, errAmbiguous} {
		if errors.Is(err, is) {
			return true
		}
	}
	return false
}

// errElsewhere is returned for a session that begins in another file.
var errElsewhere = errors.New("the session begins in another file")

// errChanged is returned if messages were erased after the session was planned.
var errChanged = errors.New("the history changed meanwhile")

// errAmbiguous is returned for a session with a record that has a key twice, which programs read differently.
var errAmbiguous = errors.New("a record has a key twice")

// matchOwn matches the lines of a source with the messages of a history.
func matchOwn(ctx context.Context, all linesOf, h *history, t *target) (*ownLines, error) {
	o := &ownLines{all: all, target: t, lineOf: make([]int, len(h.spans))}
	for i := range o.lineOf {
		o.lineOf[i] = -1
	}
	for line, err := range all(ctx) {
		if err != nil {
			return nil, err
		}
		l := ownLine{first: -1, last: -1}
		if rawjson.Valid(line.Raw) && rawjson.IsObject(bytes.TrimSpace(line.Raw)) {
			if ambiguous(line.Raw) {
				return nil, errAmbiguous
			}
			if err := t.line(line.Raw, &l); err != nil {
				return nil, err
			}
		}
		for _, span := range line.Spans {
			i, ok := h.index[span]
			switch {
			case !ok:
				l.others++
				continue
			case l.first < 0:
				l.first = i
			}
			l.last = max(l.last, i)
			if o.lineOf[i] < 0 {
				o.lineOf[i] = len(o.lines)
			}
		}
		o.lines = append(o.lines, l)
	}
	return o, nil
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
	if o.target.tree {
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
		if !l.said && l.id == "" {
			o.keep[i] = true
		}
		if !l.said || !o.within(i) {
			continue
		}
		for at := i; !o.keep[at]; {
			o.keep[at] = true
			above, ok := byID[o.lines[at].parent]
			if !ok || above >= at || o.lines[above].said && !o.within(above) {
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
