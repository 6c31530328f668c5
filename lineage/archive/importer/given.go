package importer

import (
	"errors"
	"slices"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/structure"
)

// spansOf returns the known spans of nodes. A span is zero if it must be looked up, because the node is of a later line or
// was read differently before. It returns nil if all must be looked up.
func (g *given) spansOf(nodes []archive.Node) []structure.SpanRef {
	if g.spans == nil || len(nodes) == 0 || nodes[0].At.Line > g.lines {
		return nil
	}
	spans := make([]structure.SpanRef, len(nodes))
	for i := 0; i < len(nodes); {
		line, end := nodes[i].At.Line, i+1
		for end < len(nodes) && nodes[end].At.Line == line {
			end++
		}
		if line <= g.lines {
			if known := g.spans(line); len(known) == end-i {
				copy(spans[i:], known)
			}
		}
		i = end
	}
	return spans
}

// putInOrder undoes what a reader has put in order, where the store has another order: a reader sorts only lines that it reads
// together, and these were read separately before. The first len(spans) spans are those of nodes, zero where unknown.
func putInOrder(nodes []archive.Node, spans []structure.SpanRef) {
	for i := 1; i < len(spans); i++ {
		for j := i; j > 0 && isMoved(&nodes[j-1], &nodes[j], spans[j-1], spans[j]); j-- {
			nodes[j-1], nodes[j] = nodes[j], nodes[j-1]
			spans[j-1], spans[j] = spans[j], spans[j-1]
		}
	}
}

// isMoved reports whether a reader has put a node before one of an earlier line that comes first in the store.
func isMoved(n, next *archive.Node, at, nextAt structure.SpanRef) bool {
	switch {
	case n.At.Line <= next.At.Line || n.Parent != "" || next.Parent != "":
		return false
	case n.Aside != next.Aside:
		return true // in another history
	case n.Root || next.Root:
		return false
	}
	return !nextAt.IsZero() && (at.IsZero() || at.Run == nextAt.Run && at.Seq > nextAt.Seq)
}

// lacks reports whether a node is on a known line without spans, or on one of the first lines up to another.
func (g *given) lacks(nodes []archive.Node, upTo int64) bool {
	return slices.ContainsFunc(nodes, func(n archive.Node) bool {
		line := n.At.Line
		return line > 0 && (line <= upTo || line <= g.lines && len(g.spans(line)) == 0)
	})
}

// knowSpan records the known span of a node.
func (l *loader) knowSpan(st *loading, p *prepared, at structure.SpanRef) error {
	if !st.thread.existed {
		return ErrDeleted
	}
	last, known := l.given.ends[at.Run]
	if !known {
		state, err := l.state()
		if err != nil {
			return err
		}
		end, err := state.Last(l.ctx, at.Run)
		if errors.Is(err, lineage.ErrNotFound) {
			return ErrStale
		}
		if err != nil {
			return err
		}
		last = end.Seq
		l.given.ends[at.Run] = last
	}
	if at.Seq > last {
		return ErrStale
	}
	st.setRef(p.index, at)
	return nil
}
