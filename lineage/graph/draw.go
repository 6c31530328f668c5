package graph

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
)

// Drawing is a graph on lanes. It has a row for each message at which a line begins, ends or forks, or that has a
// name. The beginnings of the thread follow one another, the active one first; the rows of each are in the order of
// positions. Each line has a lane. The active history is on lane 0. A lane is used again after its line has ended,
// except lane 0.
type Drawing struct {
	Rows  []Row
	Edges []Edge
	// Lanes is the number of lanes.
	Lanes int
}

// Row is a message in a drawing.
type Row struct {
	Place
	Lane   int
	Labels []Label
	// Folded is the number of messages between this one and the one above it on its line.
	Folded uint64
	// Hidden is the number of lines that fork off here and are not drawn, including those that fork off them.
	Hidden int
	// Current is set for the tip of the active branch, Root for a first message.
	Current, Root bool
}

// Edge connects two rows, by index.
type Edge struct{ From, To int }

// Options configure what is drawn.
type Options struct {
	// Lanes, when not zero, is the maximum number of lanes. Lines without a free lane are counted in the row from
	// which they fork.
	Lanes int
	// Want, when not nil, restricts the drawing to lines with a label for which it returns true, and to lines that
	// lead to them.
	Want func(Label) bool
}

// Draw places a graph on lanes. Roots that have only records of an import are left out.
func (g *Graph) Draw(o Options) *Drawing {
	d := drawer{Graph: g, o: o, wanted: make(map[*Line]bool), marks: make(map[*Line][]uint64), hidden: make(map[Place]int)}
	for at, labels := range g.Labels {
		d.mark(at)
		if o.Want == nil || !slices.ContainsFunc(labels, o.Want) {
			continue
		}
		for l := at.Line; l != nil && !d.wanted[l]; l = l.After.Line {
			d.wanted[l] = true
		}
	}
	d.mark(g.Current)
	records := g.Records()
	roots := slices.DeleteFunc(slices.Clone(g.Roots), func(l *Line) bool { return records[l] != "" })
	slices.SortStableFunc(roots, func(a, b *Line) int { return cmp.Compare(min(b.Main, 1), min(a.Main, 1)) })
	for _, root := range roots {
		if root.Main > 0 || d.wants(root) {
			d.root(root)
		}
	}
	return &d.Drawing
}

type drawer struct {
	*Graph
	Drawing
	o Options
	// wanted are the lines selected by Options.Want.
	wanted map[*Line]bool
	// marks are the places of each line that have a row of their own.
	marks map[*Line][]uint64
	// hidden counts the lines that are not drawn, by the place from which they fork.
	hidden map[Place]int
}

func (d *drawer) wants(l *Line) bool { return d.o.Want == nil || d.wanted[l] }

func (d *drawer) mark(at Place) {
	if at.Line != nil {
		d.marks[at.Line] = append(d.marks[at.Line], at.At)
	}
}

// strand is what is drawn on one lane: the active history of a root, or a part of a line outside of it.
type strand struct {
	after Place
	parts []lineRange
	lane  int
}

// lineRange is a part of a line.
type lineRange struct {
	line     *Line
	from, to uint64
}

func (s *strand) last() Place {
	p := s.parts[len(s.parts)-1]
	return p.line.At(p.to)
}

// main returns the strand with which the tree of a root begins.
func (d *drawer) main(root *Line) *strand {
	if root.Main == 0 {
		return &strand{parts: []lineRange{{root, 1, root.Last}}}
	}
	s := &strand{}
	for at := d.Current; at.Line != nil; at = at.Line.After {
		s.parts = append(s.parts, lineRange{at.Line, 1, at.At})
	}
	slices.Reverse(s.parts)
	return s
}

// forks calls pass with the strands that fork off a strand.
func (s *strand) forks(pass func(*strand)) {
	for i, p := range s.parts {
		var next *Line
		if i+1 < len(s.parts) {
			next = s.parts[i+1].line
		}
		for _, l := range p.line.ForksFrom(p.from) {
			if l.After.At <= p.to && l != next {
				pass(&strand{after: l.After, parts: []lineRange{{l, 1, l.Last}}})
			}
		}
		if p.to < p.line.Last { // the active history left the line here
			pass(&strand{after: p.line.At(p.to), parts: []lineRange{{p.line, p.to + 1, p.line.Last}}})
		}
	}
}

// lines returns the number of lines in a strand that forks off, including those that fork off it.
func (s *strand) lines() int {
	n, p := 1, s.parts[0]
	for _, fork := range p.line.ForksFrom(p.from) {
		for range fork.below() {
			n++
		}
	}
	return n
}

// starts is a heap of strands, ordered by the position at which they fork.
type starts []*strand

func (s starts) Len() int { return len(s) }
func (s starts) Less(i, j int) bool {
	a, b := s[i], s[j]
	return cmp.Or(cmp.Compare(a.after.Position(), b.after.Position()), a.parts[0].line.Run.Compare(b.parts[0].line.Run)) < 0
}
func (s starts) Swap(i, j int) { s[i], s[j] = s[j], s[i] }
func (s *starts) Push(x any)   { *s = append(*s, x.(*strand)) }
func (s *starts) Pop() any {
	last := (*s)[len(*s)-1]
	*s = (*s)[:len(*s)-1]
	return last
}

// root draws the tree of a root. Strands get their lanes in the order of the positions at which they fork.
func (d *drawer) root(root *Line) {
	shown := []*strand{d.main(root)}
	ends := []uint64{math.MaxUint64} // by lane, the position of its last message; the first lane is not used again
	todo := &starts{}
	add := func(s *strand) { heap.Push(todo, s) }
	for shown[0].forks(add); todo.Len() > 0; {
		s := heap.Pop(todo).(*strand)
		start := s.after.Position()
		s.lane = slices.IndexFunc(ends, func(end uint64) bool { return end < start })
		if s.lane < 0 {
			s.lane = len(ends)
		}
		d.mark(s.after)
		if !d.wants(s.parts[0].line) || d.o.Lanes > 0 && s.lane >= d.o.Lanes {
			d.hidden[s.after] += s.lines()
			continue
		}
		if s.lane == len(ends) {
			ends = append(ends, 0)
		}
		ends[s.lane] = s.last().Position()
		shown = append(shown, s)
		s.forks(add)
	}
	d.Lanes = max(d.Lanes, len(ends))
	d.rows(shown)
}

// rows adds the rows and edges of the strands of a tree.
func (d *drawer) rows(shown []*strand) {
	var rows []Row
	var edges [][2]Place
	for _, s := range shown {
		above := s.after
		for i, p := range s.parts {
			at := slices.Clone(d.marks[p.line])
			if i == 0 {
				at = append(at, p.from)
			}
			if i == len(s.parts)-1 {
				at = append(at, p.to)
			}
			slices.Sort(at)
			for _, n := range slices.Compact(at) {
				if n < p.from || n > p.to {
					continue
				}
				place := p.line.At(n)
				rows = append(rows, Row{
					Place: place, Lane: s.lane, Labels: d.Labels[place], Hidden: d.hidden[place], Folded: place.Position() - above.Position() - 1,
					Current: place == d.Current, Root: place.Position() == 1,
				})
				if above.Line != nil {
					edges = append(edges, [2]Place{above, place})
				}
				above = place
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Position(), b.Position()), cmp.Compare(a.Lane, b.Lane))
	})
	index := make(map[Place]int, len(rows))
	for i := range rows {
		index[rows[i].Place] = len(d.Rows) + i
	}
	for _, e := range edges {
		d.Edges = append(d.Edges, Edge{From: index[e[0]], To: index[e[1]]})
	}
	d.Rows = append(d.Rows, rows...)
}
