package importer

import (
	"slices"

	"github.com/lineage-store/lineage/internal/place"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/structure"
)

// place finds or adds the span of a node.
func (l *loader) place(st *loading, p *prepared) error {
	if l.next.known++; l.next.full() || l.next.known > maxKnown && l.next.empty() {
		if err := l.flush(); err != nil {
			return err
		}
		if st.lost {
			return nil
		}
	}
	found, err := l.placeOne(st, p)
	if err != nil {
		return err
	}
	n := &st.nodes[p.index]
	if n.kept {
		l.report.Kept++
	}
	if first, known := st.byID[p.Node.ID]; known && first != p.index && st.nodes[first].ref != n.ref {
		l.repair(archive.Damaged(p.At.In("message "+p.Node.ID), archive.Malformed("duplicate message id; the id finds the first")))
	}
	if found.Batch {
		// The node keeps the whole part in memory.
		size := l.part
		if l.partIn == l.next {
			size = int64(len(p.Usages)) << 9
		}
		l.partIn = l.next
		l.next.retain(item{st, p}, size)
	}
	switch {
	case !found.How.Has():
		if p.Aside != lineage.AsideLog {
			l.created++
		}
	case n.foreign && p.Aside != lineage.AsideLog:
		l.next.added.shared++
	}
	return nil
}

// placeOne finds or adds the span of a node in the current commit.
func (l *loader) placeOne(st *loading, p *prepared) (place.Found, error) {
	t, n := st.thread, &st.nodes[p.index]
	if p.Created.IsZero() {
		for i := range p.Usages {
			p.Usages[i].CreatedAt = t.record.CreatedAt
		}
	}
	p.Behind = st.older()
	l.addThread(t)
	placer, err := l.next.placerOf(t)
	if err != nil {
		return place.Found{}, err
	}
	found, err := placer.Place(st.refOf(p.parent), &p.Message)
	if err != nil {
		return place.Found{}, err
	}
	n.ref, n.stored, n.kept = found.Span, found.How.Has() && !found.Batch, found.How == place.Kept
	if found.How.Has() {
		n.foreign = !t.existed && t.base.Has(n.ref)
		return found, nil
	}
	st.grew = true
	t.grown[n.ref.Run] = true
	if p.Aside != lineage.AsideLog {
		l.next.added.messages++
	}
	return found, nil
}

func (st *loading) refOf(node int32) structure.SpanRef {
	if node < 0 {
		return structure.SpanRef{}
	}
	return st.nodes[node].ref
}

// findCopied finds the thread that a conversation with shared ids was copied from, by the id of its first message. The
// records before that message are shared as well.
func (l *loader) findCopied(st *loading, nodes []archive.Node) error {
	if st.sought || !st.header.SharedIDs || st.thread.existed || st.thread.base != nil {
		return nil
	}
	first := slices.IndexFunc(nodes, func(n archive.Node) bool { return n.ID != "" && n.Aside == "" })
	if first < 0 {
		return nil
	}
	st.sought = true
	id := nodes[first].ID
	if l.next.firsts[id] || l.next.placers[st.thread] != nil { // it may be in the commit, or the placer knows no base
		if err := l.flush(); err != nil || st.lost {
			return err
		}
	}
	l.next.firsts[id] = true
	state, err := l.state()
	if err != nil {
		return err
	}
	thread, err := place.FindCopy(l.ctx, state, st.thread.record.UserID, id, func(t *structure.Thread) bool {
		return t.ID != st.thread.record.ID && archivedIn(t).Format == l.format
	})
	if thread == nil || err != nil {
		return err
	}
	return l.shareWith(st.thread, thread, state)
}
