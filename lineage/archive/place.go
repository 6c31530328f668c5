package archive

import (
	"bytes"
	"errors"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/structure"
)

// place finds the span of a node, or makes it.
//
// What is in the thread already is taken by its digest. What begins like another
// thread is shared with that: all of it, if more than the first message is the
// same. A first message alone, such as a greeting, is shared only if it is the
// same message by its id as well.
func (l *loader) place(st *loading, p *prepared, index int32) error {
	if h := st.held; h != nil {
		st.held = nil
		goesOn := false
		if p.parent == h.node {
			if _, goesOn = l.prefixes.get(p.digest, h.at.ref); !goesOn {
				at, ok, err := l.stored(st, h.at.ref, p, true)
				if err != nil {
					return err
				}
				if goesOn = ok; ok {
					l.prefixes.put(p.digest, at)
				}
			}
		}
		if goesOn {
			l.share(st, &h.prepared, h.node, h.at, true)
		} else if err := l.emit(st, &h.prepared, h.node); err != nil {
			return err
		}
	}
	if at, ok := st.thread.owned(p.digest, p.own); ok {
		l.prefixes.put(p.digest, at)
		l.share(st, p, index, at, false)
		return nil
	}
	var parent structure.SpanRef
	inStore := true
	if p.parent >= 0 {
		parent = st.nodes[p.parent].ref
		inStore = st.nodes[p.parent].stored
	} else if at, ok := st.roots[keyOf(p.digest)]; ok {
		l.share(st, p, index, at, at.owner != st.number)
		return nil
	}
	at, ok := l.prefixes.get(p.digest, parent)
	if !ok {
		var err error
		if at, ok, err = l.stored(st, parent, p, inStore); err != nil {
			return err
		}
	}
	if ok && at.owner == st.number {
		l.share(st, p, index, at, false)
		return nil
	}
	if ok {
		if p.parent < 0 && p.own.id != 0 && at.own.id != p.own.id {
			st.held = &held{*p, at, index}
			return nil
		}
		l.prefixes.put(p.digest, at)
		l.share(st, p, index, at, true)
		return nil
	}
	return l.emit(st, p, index)
}

// stored looks for a node in the store. A message of the same id that the import
// has not met is taken for one that a deleted thread left behind, unless the
// archive says that the conversation was forked: shared, it could not be found in
// the new thread under its id.
func (l *loader) stored(st *loading, parent structure.SpanRef, p *prepared, parentStored bool) (at place, ok bool, err error) {
	if !parentStored || l.fresh && !l.prefixes.lost {
		return place{}, false, nil
	}
	if parent.IsZero() {
		at, ok, err = l.find.root(p.usages, p.digest)
	} else {
		at, ok, err = l.find.child(parent, p.digest)
	}
	left := p.own.id != 0 && at.own.id == p.own.id && st.header.ForkedFrom == ""
	return at, ok && !left, err
}

// share gives a node a span that there is.
func (l *loader) share(st *loading, p *prepared, index int32, at place, foreign bool) {
	n := &st.nodes[index]
	n.ref, n.stored, n.foreign, n.inner = at.ref, true, foreign, at.inner && !foreign
	if p.parent < 0 {
		st.root(p.digest, at)
	}
	if foreign && p.Aside != asideLog {
		l.next.added.shared++
	}
	if p.own.differs(at.own) {
		st.original(p)
	}
}

// root remembers where a history begins: one that begins alike begins there too.
func (st *loading) root(digest structure.Digest, at place) {
	if st.roots == nil {
		st.roots = make(map[digestKey]place, 1)
	}
	if _, known := st.roots[keyOf(digest)]; !known {
		st.roots[keyOf(digest)] = at
	}
}

func (st *loading) refOf(node int32) structure.SpanRef {
	if node < 0 {
		return structure.SpanRef{}
	}
	return st.nodes[node].ref
}

// emit makes a span for a node.
func (l *loader) emit(st *loading, p *prepared, index int32) error {
	t := st.thread
	alias := structure.Alias{}
	if p.ID != "" && st.byID[p.ID] == index {
		alias = t.alias(p.usages[0].SourceID)
		if t.existed {
			// A span may have the id that no history of the thread has: one that was edited
			// since, or that was left behind when an import ended early.
			ref, err := l.engine.Find(l.ctx, alias)
			switch {
			case err == nil:
				if at, ok, err := l.find.check(ref, st.refOf(p.parent), p.digest); err != nil {
					return err
				} else if ok {
					l.share(st, p, index, at, false)
					return nil
				}
				alias = structure.Alias{}
			case !errors.Is(err, lineage.ErrNotFound):
				return err
			}
		}
	}
	if l.next.full() {
		if err := l.flushOpen(st); err != nil {
			return err
		}
	}
	created := p.Created
	if created.IsZero() {
		created = t.record.CreatedAt
	}
	for i, b := range p.blocks {
		u := &p.usages[i]
		u.CreatedAt = created
		if b == nil {
			if err := l.cut(p, i, created); err != nil {
				return err
			}
			continue
		}
		if b.CreatedAt.IsZero() {
			b.CreatedAt = created
		}
		l.next.add(b, 0)
	}
	p.usages[0].Alias = alias
	n := &st.nodes[index]
	var err error
	if n.ref, err = l.nextRef(st, p.parent); err != nil {
		return err
	}
	*p.span = structure.Span{Ref: n.ref, Usages: p.usages}
	l.next.add(p.span, p.bytes)
	own := p.own
	own.created = identityOf("", created, nil).created
	at := place{ref: n.ref, own: own, owner: st.number}
	if p.parent < 0 {
		at.after = afterOf(structure.SpanRef{})
		st.root(p.digest, at)
	} else {
		at.after = afterOf(st.nodes[p.parent].ref)
	}
	l.prefixes.put(p.digest, at)
	if p.Aside != asideLog {
		l.next.added.messages++
		l.made++
	}
	return nil
}

// cut stores a body that is too large to be kept whole, unless the store has it.
func (l *loader) cut(p *prepared, i int, created time.Time) error {
	id := p.usages[i].Content
	has, err := l.engine.Has(l.ctx, []content.ID{id})
	if err != nil || has[0] {
		return err
	}
	body := p.Body
	if i > 0 {
		body = p.Attachments[i-1].Body
	}
	b := &structure.Block{Block: content.Block{ID: id, Type: p.usages[i].Type, Size: int64(len(body)), Origin: *p.usages[i].Origin, CreatedAt: created}}
	chunks := newPending()
	_, b.Tree, err = content.Cut(l.ctx, bytes.NewReader(body), func(key content.Key, chunk []byte) error {
		chunks.add(&structure.Chunk{Key: key, Bytes: bytes.Clone(chunk)}, len(chunk))
		if chunks.bytes < 1<<20 {
			return nil
		}
		full := chunks
		chunks = newPending()
		return l.commits.send(full)
	})
	if err != nil {
		return err
	}
	if len(chunks.records) > 0 {
		if err := l.commits.send(chunks); err != nil {
			return err
		}
	}
	l.next.add(b, 64)
	return nil
}

// nextRef returns where a span after a parent goes: on in its run if that ends
// there, else into a run of its own.
func (l *loader) nextRef(st *loading, parent int32) (structure.SpanRef, error) {
	t := st.thread
	var after structure.SpanRef
	if parent >= 0 {
		n := &st.nodes[parent]
		after = n.ref
		end, known := t.ends[after.Run]
		if !known && n.stored && !n.foreign && !l.grown[after.Run] {
			l.grown[after.Run] = true
			last, err := l.engine.Last(l.ctx, after.Run)
			if err != nil {
				return structure.SpanRef{}, err
			}
			end, known = last.Seq, true
			t.ends[after.Run] = end
		}
		if known && end == after.Seq {
			t.ends[after.Run]++
			t.grown[after.Run] = true
			return structure.SpanRef{Run: after.Run, Seq: after.Seq + 1}, nil
		}
	}
	run := &structure.Run{ID: structure.NewID[structure.RunID](), Parent: after}
	l.next.add(run, 40)
	t.ends[run.ID] = 1
	t.grown[run.ID] = true
	return structure.SpanRef{Run: run.ID, Seq: 1}, nil
}
