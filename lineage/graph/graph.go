// Package graph has the histories of a thread as a graph: lines of messages that fork off one another, with the names
// that point to them. Its size depends on the number of forks and names, not on that of messages.
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

// Graph is the histories of a thread.
type Graph struct {
	// Roots are the lines that begin with a first message.
	Roots []*Line
	// Labels are the names that point to messages.
	Labels map[Place][]Label
	// Current is where the active branch is.
	Current Place

	runs map[structure.RunID]*Line
}

// New returns an empty graph.
func New() *Graph {
	return &Graph{Labels: make(map[Place][]Label), runs: make(map[structure.RunID]*Line)}
}

// Line is a straight part of a history.
type Line struct {
	// Run is its run in a store, zero in a graph of another source.
	Run structure.RunID
	// After is the message that it forks off, zero if it begins a history, and Before how many messages lead to it.
	After  Place
	Before uint64
	// Last is how many messages it has, and Main how far the history of the active branch goes in it.
	Last, Main uint64
	// Forks are the lines that fork off it, in the order of their places.
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

// Place returns the place of a span, zero if the graph does not have it.
func (g *Graph) Place(ref lineage.SpanRef) Place {
	if l := g.runs[ref.Run]; l != nil {
		return Place{l, ref.Seq}
	}
	return Place{}
}

// Add adds a line, after those that fork off before it.
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

// SetCurrent sets where the active branch is.
func (g *Graph) SetCurrent(at Place) {
	g.Current = at
	for ; at.Line != nil; at = at.Line.After {
		at.Line.Main = at.At
	}
}

// Lines yields every line, and after it those that fork off it.
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

// below yields a line, and after it those that fork off it.
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

// ForksFrom returns the lines that fork off a line from a message on.
func (l *Line) ForksFrom(at uint64) []*Line {
	i, _ := slices.BinarySearchFunc(l.Forks, at, func(fork *Line, at uint64) int { return cmp.Compare(fork.After.At, at) })
	return l.Forks[i:]
}

// Messages returns how many messages a line has from one on, with what forks off it there.
func (l *Line) Messages(from uint64) uint64 {
	n := l.Last - from + 1
	for _, fork := range l.ForksFrom(from) {
		for l := range fork.below() {
			n += l.Last
		}
	}
	return n
}

// Records returns the roots that have only records of an import, each with the name of its records.
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
