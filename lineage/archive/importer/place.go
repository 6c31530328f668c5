package importer

import (
	"github.com/lineage-store/lineage/internal/place"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
)

// place finds or adds the span of a node.
func (l *loader) place(st *loading, p *prepared) error {
	if l.next.known++; l.next.full() || l.next.known > maxKnown && l.next.empty() {
		if err := l.flush(); err != nil {
			return err
		}
		if st.leftOut {
			return nil
		}
	}
	found, err := l.placeOne(st, p)
	if err != nil {
		return err
	}
	n := st.nodes.at(p.index)
	if n.kept {
		l.report.Kept++
	}
	if p.Message.ID != p.Node.ID { // another node has the id
		if first, known := st.node(p.Node.ID); known && st.refOf(first) != st.ref(n) {
			l.repair(archive.Damaged(p.At.In("message "+p.Node.ID), archive.Malformed("duplicate message id; the id finds the first")))
		}
	}
	if found.Batch {
		l.next.retain(item{st, p}, int64(len(p.Usages))<<9)
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
func (l *loader) placeOne(st *loading, p *prepared) (place.Match, error) {
	t := st.thread
	if p.Created.IsZero() {
		for i := range p.Usages {
			p.Usages[i].CreatedAt = t.record.CreatedAt
		}
	}
	p.Behind = st.older()
	l.addThread(t)
	placer, err := l.next.placerOf(t)
	if err != nil {
		return place.Match{}, err
	}
	found, err := placer.Place(st.refOf(p.parent), &p.Message)
	if err != nil {
		return place.Match{}, &StoreError{err}
	}
	p.copy = found.Copy
	st.setRef(p.index, found.Span)
	n := st.nodes.change(p.index)
	n.kept = found.How == place.Kept
	if found.How.Has() {
		n.foreign = !t.existed && t.base.Has(found.Span)
		return found, nil
	}
	st.grew = true
	t.grown[found.Span.Run] = true
	if p.Aside != lineage.AsideLog {
		l.next.added.messages++
	}
	return found, nil
}
