package embedded

import (
	"fmt"

	"github.com/lineage-store/lineage/internal/index"
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
	var was *structure.Branch
	err := b.named(tableBranch, r.Thread, r.Name, r, &b.counts.branches, func(old structure.Record) bool {
		was = old.(*structure.Branch)
		return was.Context == r.Context
	})
	if err != nil {
		return err
	}
	if was == nil {
		was = &structure.Branch{}
	}
	if err := b.source(tableBranchFrom, r.Thread, r.Name, was.SourceID, r.SourceID); err != nil {
		return err
	}
	if was.Context == r.Context {
		return nil
	}
	if was.Name != "" {
		b.put(namedKey(was.Thread, was.Context, was.Name), nil)
	}
	b.put(namedKey(r.Thread, r.Context, r.Name), present)
	return nil
}

// source changes the source id under which a name of a thread is found.
func (b *builder) source(table byte, thread structure.ThreadID, name, was, is string) error {
	if was == is {
		return nil
	}
	if was != "" {
		k := sourceKey(table, was, thread[:]...)
		// Of a commit that is replayed another name may have the id by now.
		if v, ok, err := b.get(k); err != nil {
			return err
		} else if ok && string(v) == name {
			b.put(k, nil)
		}
	}
	if is == "" {
		return nil
	}
	subject := func(err error, why string) error {
		return &backend.SubjectError{Subject: "source id", ID: fmt.Sprintf("%.80q", is), Err: err, Detail: why}
	}
	if len(is) > backend.MaxSourceID {
		return subject(backend.ErrInvalid, fmt.Sprintf("it has more than %d bytes", backend.MaxSourceID))
	}
	k := sourceKey(table, is, thread[:]...)
	if other, taken, err := b.get(k); err != nil {
		return err
	} else if taken && !b.replay {
		return subject(backend.ErrExists, fmt.Sprintf("it is that of %.80q", other))
	}
	b.put(k, []byte(name))
	return nil
}

func (b *builder) checkpoint(r *structure.Checkpoint) error {
	if r.Span.IsZero() || r.ID.IsZero() {
		return invalid("checkpoint", r.ID, "no span or id")
	}
	if err := b.requireSpan(r.Span); err != nil {
		return err
	}
	source := ""
	err := b.named(tableCheckpoint, r.Thread, r.Name, r, &b.counts.checkpoints, func(was structure.Record) bool {
		source = was.(*structure.Checkpoint).SourceID
		return was.(*structure.Checkpoint).ID == r.ID
	})
	if err != nil {
		return err
	}
	return b.source(tablePointFrom, r.Thread, r.Name, source, r.SourceID)
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
	} else {
		was, err := structure.UnmarshalRecord(r.Kind(), old)
		if err != nil {
			return err
		}
		if !same(was) && !b.replay {
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
		return b.deleteBranch(d)
	case structure.KindCheckpoint:
		return b.deleteCheckpoint(d)
	case structure.KindSummary:
		return b.deleteSummary(d)
	case structure.KindBlock:
		return b.erase(d.Content)
	}
	return invalid("deletion", d.Subject, "nothing to delete")
}

func (b *builder) deleteBranch(d *structure.Deletion) error {
	k := branchKey(d.Thread, d.Name)
	record, known, err := b.get(k)
	if err != nil {
		return err
	}
	if !known {
		return b.noName(d)
	}
	return b.dropBranch(index.Entry{Key: k, Value: record})
}

// dropBranch takes out a branch, given its entry.
func (b *builder) dropBranch(e index.Entry) error {
	r, err := structure.UnmarshalRecord(structure.KindBranch, e.Value)
	if err != nil {
		return err
	}
	branch := r.(*structure.Branch)
	b.counts.branches--
	b.put(e.Key, nil)
	b.put(namedKey(branch.Thread, branch.Context, branch.Name), nil)
	return b.source(tableBranchFrom, branch.Thread, branch.Name, branch.SourceID, "")
}

func (b *builder) deleteCheckpoint(d *structure.Deletion) error {
	k := b.slab.key(tableCheckpoint, d.Thread[:], []byte(d.Name))
	record, known, err := b.get(k)
	if err != nil {
		return err
	}
	if !known {
		return b.noName(d)
	}
	return b.dropCheckpoint(index.Entry{Key: k, Value: record})
}

// dropCheckpoint takes out a checkpoint, given its entry.
func (b *builder) dropCheckpoint(e index.Entry) error {
	r, err := structure.UnmarshalRecord(structure.KindCheckpoint, e.Value)
	if err != nil {
		return err
	}
	c := r.(*structure.Checkpoint)
	b.counts.checkpoints--
	b.put(e.Key, nil)
	return b.source(tablePointFrom, c.Thread, c.Name, c.SourceID, "")
}

// noName refuses the deletion of a name that is not there. When replaying, a
// collection may have taken it.
func (b *builder) noName(d *structure.Deletion) error {
	if b.replay {
		return nil
	}
	return &backend.SubjectError{Subject: d.Subject.String(), ID: fmt.Sprintf("%q", d.Name), Err: backend.ErrNotFound}
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
	for e, err := range b.scan(key(tableBranch, id[:])) {
		if err != nil {
			return err
		}
		if err := b.dropBranch(e); err != nil {
			return err
		}
	}
	for e, err := range b.scan(key(tableCheckpoint, id[:])) {
		if err != nil {
			return err
		}
		if err := b.dropCheckpoint(e); err != nil {
			return err
		}
	}
	b.move(id, mover{gone: true})
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

func (b *builder) deleteAll(prefix []byte) error {
	for e, err := range b.scan(prefix) {
		if err != nil {
			return err
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
		prefix := key(tableNamed, c.Thread[:], id[:])
		for e, err := range b.scan(prefix) {
			if err == nil {
				err = &backend.SubjectError{Subject: "context", ID: id.String(), Err: backend.ErrConflict, Detail: fmt.Sprintf("branch %q is it", e.Key[len(prefix):])}
			}
			return err
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
	b.engine.homes.forget(id)
	b.put(b.slab.key(tableContext, id[:]), nil)
	b.put(b.slab.key(tableTip, id[:]), nil)
	b.put(b.slab.key(tableMember, c.Thread[:], id[:]), nil)
	if !c.Parent.IsZero() {
		b.put(b.slab.key(tableChild, c.Parent[:], id[:]), nil)
	}
	if err := b.deleteAll(key(tableSummary, id[:])); err != nil {
		return err
	}
	return b.deleteAll(key(tableReflog, id[:]))
}
