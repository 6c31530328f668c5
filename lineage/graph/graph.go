// Package graph represents the histories of a thread as a graph: lines of messages that fork off one another, with
// the names that point to them. Its size depends on the number of forks and names, not on the number of messages.
//
// Of reads the graph of a thread. Draw places it on lanes, for a picture.
package graph

import (
	"cmp"
	"iter"
	"slices"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/structure"
)

// Graph has the histories of a thread.
type Graph struct {
	// Roots are the lines that begin with a first message.
	Roots []*Line
	// Labels are the names that point to messages.
	Labels map[Place][]Label
	// Current is the tip of the active branch.
	Current Place

	runs map[structure.RunID]*Line
}

// New returns an empty graph.
func New() *Graph {
	return &Graph{Labels: make(map[Place][]Label), runs: make(map[structure.RunID]*Line)}
}

// Line is a straight part of a history.
type Line struct {
	// Run is the run of the line in the store, zero in a graph from another source.
	Run structure.RunID
	// After is the message from which the line forks, zero if it begins a history. Before is the number of messages
	// before the line.
	After  Place
	Before uint64
	// Last is the number of messages of the line. Main is the number of its messages that are in the history of the
	// active branch.
	Last, Main uint64
	// Forks are the lines that fork off it, in the order of the places where they fork.
	Forks []*Line
}

// Place is a message of a line, counted from 1. The zero Place is the start of every history.
type Place struct {
	Line *Line
	At   uint64
}

// At returns a message of the line, counted from 1.
func (l *Line) At(n uint64) Place { return Place{l, n} }

// Position returns the position of the message in its history, from 1.
func (p Place) Position() uint64 {
	if p.Line == nil {
		return 0
	}
	return p.Line.Before + p.At
}

// Ref returns the span of a place in a store.
func (p Place) Ref() lineage.SpanRef {
	if p.Line == nil {
		return lineage.SpanRef{}
	}
	return lineage.SpanRef{Run: p.Line.Run, Seq: p.At}
}

// Before returns the message before the place in its history, the zero Place for a first one.
func (p Place) Before() Place {
	switch {
	case p.Line == nil:
		return Place{}
	case p.At > 1:
		return p.Line.At(p.At - 1)
	}
	return p.Line.After
}

// Followers returns how many messages follow a message directly, 0 for the zero Place.
func (p Place) Followers() (n int) {
	if p.Line == nil {
		return 0
	}
	if p.At < p.Line.Last {
		n++
	}
	for _, fork := range p.Line.ForksFrom(p.At) {
		if fork.After.At > p.At {
			break
		}
		n++
	}
	return n
}

// On returns how far a history goes in each of its lines.
func (p Place) On() map[*Line]uint64 {
	on := make(map[*Line]uint64)
	for ; p.Line != nil; p = p.Line.After {
		on[p.Line] = p.At
	}
	return on
}

// Place returns the place of a span, zero if the graph does not contain it.
func (g *Graph) Place(ref lineage.SpanRef) Place {
	if l := g.runs[ref.Run]; l != nil {
		return Place{l, ref.Seq}
	}
	return Place{}
}

// Add adds a line. It comes after the lines that fork off before it.
func (g *Graph) Add(l *Line) {
	if !l.Run.IsZero() {
		g.runs[l.Run] = l
	}
	beside := &g.Roots
	if l.After.Line != nil {
		beside = &l.After.Line.Forks
	}
	i := len(*beside)
	for i > 0 && cmp.Or(cmp.Compare((*beside)[i-1].After.At, l.After.At), (*beside)[i-1].Run.Compare(l.Run)) > 0 {
		i--
	}
	*beside = slices.Insert(*beside, i, l)
}

// Label adds a name that points to a message.
func (g *Graph) Label(at Place, l Label) { g.Labels[at] = append(g.Labels[at], l) }

// SetCurrent sets the tip of the active branch.
func (g *Graph) SetCurrent(at Place) {
	g.Current = at
	for ; at.Line != nil; at = at.Line.After {
		at.Line.Main = at.At
	}
}

// Lines yields every line, each before the lines that fork off it.
func (g *Graph) Lines() iter.Seq[*Line] {
	return func(yield func(*Line) bool) {
		for _, root := range g.Roots {
			for l := range root.below() {
				if !yield(l) {
					return
				}
			}
		}
	}
}

// below yields a line and then the lines that fork off it.
func (l *Line) below() iter.Seq[*Line] {
	return func(yield func(*Line) bool) {
		todo := []*Line{l}
		for len(todo) > 0 {
			l := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			if !yield(l) {
				return
			}
			for _, fork := range slices.Backward(l.Forks) {
				todo = append(todo, fork)
			}
		}
	}
}

// ForksFrom returns the lines that fork off a line at or after a message.
func (l *Line) ForksFrom(at uint64) []*Line {
	i, _ := slices.BinarySearchFunc(l.Forks, at, func(fork *Line, at uint64) int { return cmp.Compare(fork.After.At, at) })
	return l.Forks[i:]
}

// Messages returns the number of messages of a line from one on, including what forks off there.
func (l *Line) Messages(from uint64) uint64 {
	n := l.Last - from + 1
	for _, fork := range l.ForksFrom(from) {
		for l := range fork.below() {
			n += l.Last
		}
	}
	return n
}

// Records returns the roots that have only records of an import, with the name of the records.
func (g *Graph) Records() map[*Line]string {
	records, others := make(map[*Line]string), make(map[*Line]bool)
	for at, names := range g.Labels {
		root := at.Line
		for root != nil && root.After.Line != nil {
			root = root.After.Line
		}
		for _, l := range names {
			if l.Kind != KindRecords {
				others[root] = true
			} else if name, met := records[root]; !met || l.String() < name {
				records[root] = l.String()
			}
		}
	}
	for root := range others {
		delete(records, root)
	}
	return records
}
