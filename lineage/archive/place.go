package archive

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// place finds or creates the span of a node. Messages that the thread, or the thread it was forked
// from, already has are found by key.
func (l *loader) place(st *loading, p *prepared) error {
	t, n := st.thread, &st.nodes[p.index]
	var before messageKey
	if p.parent >= 0 {
		before = st.nodes[p.parent].key
	}
	n.key = l.hash.nextKey(before, p.usages, &t.record)
	first, hasID := st.byID[p.ID]
	if hasID && first != p.index && st.nodes[first].key != n.key {
		l.report.repair(damaged(p.place("message "+p.ID), malformed("duplicate message id; the id finds the first")))
	}
	at, ok := t.own[n.key]
	if !ok && len(t.says) > 0 {
		if key := t.says[l.hash.saidKey(before, p.usages)]; key != (messageKey{}) {
			n.key = key
			at, ok = t.own[key]
			l.report.Kept++
		}
	}
	if ok {
		n.ref, n.stored, n.inner = at.ref, true, at.inner
		return nil
	}
	if p.parent < 0 && p.ID != "" && st.header.SharedIDs && t.base == nil && !t.existed {
		if err := l.resumed(st, p.ID); err != nil {
			return err
		}
	}
	if at, ok := t.base[n.key]; ok {
		n.ref, n.stored, n.foreign = at.ref, true, true
		if p.Aside != asideLog {
			l.next.added.shared++
		}
		return nil
	}
	return l.emit(st, p, before)
}

// resumed finds the conversation in this import that a conversation continues, by the id of its
// first message.
func (l *loader) resumed(st *loading, id string) error {
	id = st.thread.record.UserID + "\x00" + id
	from, known := l.sessions[id]
	if !known {
		l.sessions[id] = strings.TrimPrefix(st.header.SourceID, l.options.Prefix)
		return nil
	}
	_, err := l.base(st.thread, from)
	return err
}

func (st *loading) refOf(node int32) structure.SpanRef {
	if node < 0 {
		return structure.SpanRef{}
	}
	return st.nodes[node].ref
}

// emit creates a span for a node.
func (l *loader) emit(st *loading, p *prepared, before messageKey) error {
	t, n := st.thread, &st.nodes[p.index]
	lookup := uint64(0)
	if first, ok := st.byID[p.ID]; ok && first == p.index {
		lookup = 1
		if t.existed {
			// A span that is on no history of the thread may have the id: a message that was
			// edited, or left by an interrupted import.
			found, err := backend.FindFirst(l.ctx, l.engine, p.ID, t.record.ID)
			switch {
			case err == nil:
				if ok, err := l.usable(found.Span, st.refOf(p.parent), before, n.key, &t.record); err != nil {
					return err
				} else if ok {
					t.own[n.key] = place{ref: found.Span}
					n.ref, n.stored = found.Span, true
					return nil
				}
				lookup = 0
			case !errors.Is(err, lineage.ErrNotFound):
				return err
			}
		}
	}
	if l.next.full() {
		if err := l.flush(); err != nil {
			return err
		}
	}
	l.addThread(t)
	if err := l.contents(p); err != nil {
		return err
	}
	p.usages[0].Lookup = lookup
	var err error
	if n.ref, err = l.nextRef(st, p); err != nil {
		return err
	}
	l.next.Span(n.ref, structure.SpanSetID{}, p.usages)
	t.own[n.key] = place{ref: n.ref}
	if p.Aside != asideLog {
		l.next.added.messages++
		l.created++
	}
	return nil
}

// contents adds the content of a node's usages to the current commit. A usage of new content omits
// the fields that its block states.
func (l *loader) contents(p *prepared) error {
	contents := p.contents
	for i := range p.usages {
		u := &p.usages[i]
		_, there := l.next.blocks[u.Content]
		if !there && len(contents) > 0 && contents[0].id == u.Content && contents[0].block != nil {
			switch {
			case u.Origin == nil || !u.Form.IsZero(): // not covered by message keys
				if u.Type == contents[0].mediaType {
					u.Type = ""
				}
			case u.Type == typeText && *u.Origin == content.BlockOrigin{Kind: originKind(p.usages)}:
				u.Type, u.Origin = "", nil
			}
		}
		for len(contents) > 0 && u.Names(contents[0].id) {
			if err := l.content(&contents[0]); err != nil {
				return err
			}
			contents = contents[1:]
		}
	}
	return nil
}

// content adds content to the current commit, unless it is in it. A large body is uploaded first,
// unless the store has it.
func (l *loader) content(c *stored) error {
	if _, there := l.next.blocks[c.id]; there {
		return nil
	}
	if c.block != nil {
		l.next.addBlock(c.block)
		return nil
	}
	has, err := l.engine.Has(l.ctx, []content.ID{c.id})
	if err != nil || has[0] {
		return err
	}
	b, err := l.writer.Upload(l.ctx, content.Block{Type: c.mediaType, Origin: content.BlockOrigin{Kind: c.kind}}, bytes.NewReader(c.body))
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	l.next.addBlock(b)
	return nil
}

// nextRef returns the ref for the span of a node: in the run of its parent if that ends there and
// does not lead elsewhere, else in a new run.
func (l *loader) nextRef(st *loading, p *prepared) (structure.SpanRef, error) {
	t := st.thread
	var after structure.SpanRef
	if p.parent >= 0 {
		n := &st.nodes[p.parent]
		after = n.ref
		end, known := t.ends[after.Run]
		if !known && n.stored && !n.foreign && !l.grown[after.Run] {
			l.grown[after.Run] = true
			run, err := l.engine.Run(l.ctx, after.Run)
			if err != nil {
				return structure.SpanRef{}, err
			}
			if run.Home == t.record.Home() {
				last, err := l.engine.Last(l.ctx, after.Run)
				if err != nil {
					return structure.SpanRef{}, err
				}
				end, known = last.Seq, true
				t.ends[after.Run] = end
			}
		}
		if known && end == after.Seq && !p.leavesWay {
			t.ends[after.Run]++
			t.grown[after.Run] = true
			return structure.SpanRef{Run: after.Run, Seq: after.Seq + 1}, nil
		}
	}
	run := l.next.NewRun(structure.RunID{}, after, t.record.Home())
	t.ends[run], t.begun[run] = 1, after
	t.grown[run] = true
	return structure.SpanRef{Run: run, Seq: 1}, nil
}
