package embedded

import (
	"fmt"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

func (b *builder) spanSet(s *structure.SpanSet) error {
	k := b.slab.key(tableSpanSet, s.ID[:])
	if known, err := b.has(k); err != nil {
		return err
	} else if known && !b.replay {
		return &backend.SubjectError{Subject: "span set", ID: s.ID.String(), Err: backend.ErrExists}
	}
	if s.ID.IsZero() {
		return invalid("span set", s.ID, "no id")
	}
	if err := b.requireSpan(s.Parent); err != nil {
		return err
	}
	v, err := value(s)
	b.put(k, v)
	return err
}

func (b *builder) branch(r *structure.Branch) error {
	if err := b.require(b.scratch(tableContext, r.Context[:]), "context", r.Context); err != nil {
		return err
	}
	return b.named(tableBranch, r.Thread, r.Name, r, &b.counts.branches, func(was structure.Record) bool {
		return was.(*structure.Branch).Context == r.Context
	})
}

func (b *builder) checkpoint(r *structure.Checkpoint) error {
	if r.Span.IsZero() || r.ID.IsZero() {
		return invalid("checkpoint", r.ID, "no span or id")
	}
	if err := b.requireSpan(r.Span); err != nil {
		return err
	}
	return b.named(tableCheckpoint, r.Thread, r.Name, r, &b.counts.checkpoints, func(was structure.Record) bool {
		return was.(*structure.Checkpoint).ID == r.ID
	})
}

// mostName is how long a name may be, in bytes: it is part of a key, and those of
// bbolt are bounded.
const mostName = 4 << 10

// named states what has a name in a thread. same reports whether what has the name
// already is the same thing; otherwise the name is taken.
func (b *builder) named(table byte, thread structure.ThreadID, name string, r structure.Record, count *uint64, same func(was structure.Record) bool) error {
	subject := r.Kind().String()
	if name == "" || len(name) > mostName {
		return &backend.SubjectError{Subject: subject, ID: fmt.Sprintf("%.80q", name), Err: backend.ErrInvalid, Detail: fmt.Sprintf("a name has 1 to %d bytes", mostName)}
	}
	if err := b.require(b.scratch(tableThread, thread[:]), "thread", thread); err != nil {
		return err
	}
	k := b.slab.key(table, thread[:], []byte(name))
	old, known, err := b.get(k)
	if err != nil {
		return err
	}
	if !known {
		*count++
	} else if !b.replay {
		was, err := structure.UnmarshalRecord(r.Kind(), old)
		if err != nil {
			return err
		}
		if !same(was) {
			return &backend.SubjectError{Subject: subject, ID: fmt.Sprintf("%q", name), Err: backend.ErrExists}
		}
	}
	v, err := value(r)
	b.put(k, v)
	return err
}

func (b *builder) summary(i int, r *structure.Summary) error {
	if r.ID.IsZero() {
		return invalid("summary", r.ID, "no id")
	}
	if err := b.require(b.scratch(tableContext, r.Context[:]), "context", r.Context); err != nil {
		return err
	}
	if _, ok := b.blocks.get(r.Content); !ok {
		if err := b.require(b.scratch(tableBlock, r.Content[:hashPrefix]), "block", r.Content); err != nil {
			return err
		}
	}
	if err := b.requireSpan(r.From); err != nil {
		return err
	}
	if err := b.requireSpan(r.To); err != nil {
		return err
	}
	v, err := value(r)
	b.put(b.slab.key(tableSummary, r.Context[:], be64(b.number), be64(uint64(i))), v)
	return err
}

func (b *builder) reflog(i int, r *structure.Reflog) error {
	if err := b.require(b.scratch(tableContext, r.Context[:]), "context", r.Context); err != nil {
		return err
	}
	if err := b.requireSpan(r.From); err != nil {
		return err
	}
	if err := b.requireSpan(r.To); err != nil {
		return err
	}
	v, err := value(r)
	b.put(b.slab.key(tableReflog, r.Context[:], be64(b.number), be64(uint64(i))), v)
	return err
}

func (b *builder) deletion(d *structure.Deletion) error {
	switch d.Subject {
	case structure.KindThread:
		return b.deleteThread(d.Thread)
	case structure.KindContext:
		return b.deleteContext(d.Context)
	case structure.KindBranch:
		return b.deleteName(tableBranch, "branch", d, &b.counts.branches)
	case structure.KindCheckpoint:
		return b.deleteName(tableCheckpoint, "checkpoint", d, &b.counts.checkpoints)
	case structure.KindSummary:
		return b.deleteSummary(d)
	case structure.KindBlock:
		return b.erase(d.Content)
	}
	return invalid("deletion", d.Subject, "nothing to delete")
}

func (b *builder) deleteName(table byte, subject string, d *structure.Deletion, count *uint64) error {
	k := b.slab.key(table, d.Thread[:], []byte(d.Name))
	known, err := b.has(k)
	if err != nil {
		return err
	}
	if !known {
		if b.replay {
			return nil
		}
		return &backend.SubjectError{Subject: subject, ID: fmt.Sprintf("%q", d.Name), Err: backend.ErrNotFound}
	}
	*count--
	b.put(k, nil)
	return nil
}

func (b *builder) deleteSummary(d *structure.Deletion) error {
	for e, err := range b.scan(key(tableSummary, d.Context[:])) {
		if err != nil {
			return err
		}
		r, err := structure.UnmarshalRecord(structure.KindSummary, e.Value)
		if err != nil {
			return err
		}
		if r.(*structure.Summary).ID == d.Summary {
			b.put(e.Key, nil)
			return nil
		}
	}
	if b.replay {
		return nil
	}
	return &backend.SubjectError{Subject: "summary", ID: d.Summary.String(), Err: backend.ErrNotFound}
}

// deleteThread takes out a thread with its contexts and names. Spans and content
// stay until they are collected.
func (b *builder) deleteThread(id structure.ThreadID) error {
	k := b.slab.key(tableThread, id[:])
	if known, err := b.has(k); err != nil {
		return err
	} else if known {
		b.counts.threads--
		b.put(k, nil)
	} else if !b.replay {
		return &backend.SubjectError{Subject: "thread", ID: id.String(), Err: backend.ErrNotFound}
	}
	for _, table := range []struct {
		letter byte
		count  *uint64
	}{{tableBranch, &b.counts.branches}, {tableCheckpoint, &b.counts.checkpoints}} {
		if err := b.deleteAll(key(table.letter, id[:]), table.count); err != nil {
			return err
		}
	}
	for e, err := range b.scan(key(tableMember, id[:])) {
		if err != nil {
			return err
		}
		var context structure.ContextID
		copy(context[:], e.Key[1+len(id):])
		if err := b.dropContext(context); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) deleteAll(prefix []byte, count *uint64) error {
	for e, err := range b.scan(prefix) {
		if err != nil {
			return err
		}
		if count != nil {
			*count--
		}
		b.put(e.Key, nil)
	}
	return nil
}

// deleteContext takes out a context that no branch names.
func (b *builder) deleteContext(id structure.ContextID) error {
	if b.replay {
		if known, err := b.has(b.scratch(tableContext, id[:])); err != nil || !known {
			return err // collected
		}
	}
	c, err := readContext(b, id)
	if err != nil {
		return err
	}
	if !b.replay && !c.Thread.IsZero() {
		for e, err := range b.scan(key(tableBranch, c.Thread[:])) {
			if err != nil {
				return err
			}
			r, err := structure.UnmarshalRecord(structure.KindBranch, e.Value)
			if err != nil {
				return err
			}
			if branch := r.(*structure.Branch); branch.Context == id {
				return &backend.SubjectError{Subject: "context", ID: id.String(), Err: backend.ErrConflict, Detail: fmt.Sprintf("branch %q is it", branch.Name)}
			}
		}
	}
	return b.dropContext(id)
}

func (b *builder) dropContext(id structure.ContextID) error {
	c, err := readContext(b, id)
	if err != nil {
		return err
	}
	b.counts.contexts--
	b.contexts.set(id, nil)
	b.put(b.slab.key(tableContext, id[:]), nil)
	b.put(b.slab.key(tableTip, id[:]), nil)
	b.put(b.slab.key(tableMember, c.Thread[:], id[:]), nil)
	if !c.Parent.IsZero() {
		b.put(b.slab.key(tableChild, c.Parent[:], id[:]), nil)
	}
	if err := b.deleteAll(key(tableSummary, id[:]), nil); err != nil {
		return err
	}
	return b.deleteAll(key(tableReflog, id[:]), nil)
}
