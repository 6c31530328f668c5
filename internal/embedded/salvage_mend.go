package embedded

import (
	"context"
	"errors"
	"time"

	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// mender brings commits into a store that lacks some of what came before them.
type mender struct {
	ctx     context.Context
	to      *Engine
	report  *SalvageReport
	at      time.Time          // of the commit that is brought
	records []structure.Record // of it
	note    *structure.Block
	// madeUp are the contexts of which only the id is known.
	madeUp map[structure.ContextID]bool
	// lost are the threads of which only the id is known, and homes the incarnations that
	// runs and values named last.
	lost  map[structure.ThreadID]bool
	homes map[structure.ThreadID]uint64
}

func newMender(ctx context.Context, to *Engine, report *SalvageReport) *mender {
	// That pieces of a body are stored is not said by the last of them any more.
	to.collected.Store(true)
	return &mender{
		ctx: ctx, to: to, report: report, madeUp: make(map[structure.ContextID]bool),
		lost: make(map[structure.ThreadID]bool), homes: make(map[structure.ThreadID]uint64),
	}
}

// commit brings a commit: as it is, if what it needs is there, else record by record.
func (m *mender) commit(f journal.Frame) error {
	c, err := structure.DecodeCommit(f.Payload)
	if err != nil {
		return nil // written by a program that was wrong, for its checksum is right: it is missing
	}
	m.report.Commits++
	m.at, m.records = c.Time, c.Records
	if err := m.meet(); err != nil {
		return err
	}
	if err := m.forgetEarlier(); err != nil {
		return err
	}
	err = m.apply(c.Records...)
	if err == nil || !refused(err) {
		return err
	}
	for _, r := range c.Records {
		switch err := m.record(r); {
		case refused(err):
			m.report.Records++
		case err != nil:
			return err
		}
	}
	return nil
}

func (m *mender) apply(records ...structure.Record) error {
	_, err := m.to.Apply(m.ctx, &structure.Commit{Time: m.at, Records: records}, backend.Options{})
	return err
}

// refused reports whether an error is about what was to be applied.
func refused(err error) bool {
	for _, kind := range []error{backend.ErrNotFound, backend.ErrConflict, backend.ErrExists, backend.ErrInvalid, backend.ErrErased} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// record brings one record, and before it what it needs and is gone.
func (m *mender) record(r structure.Record) error {
	switch r := r.(type) {
	case *structure.Block:
		return m.block(r)
	case *structure.Thread:
		return m.thread(*r)
	case *structure.Context:
		return m.context(*r)
	case *structure.Tip:
		return m.needing(r, m.needContext(r.Context, structure.ThreadID{}), m.needSpan(r.Span))
	case *structure.Run:
		return m.needing(r, m.needSpan(r.Parent))
	case *structure.Span:
		return m.span(*r)
	case *structure.SpanSet:
		return m.needing(r, m.needSpan(r.Parent))
	case *structure.Branch:
		return m.branch(r)
	case *structure.Checkpoint:
		return m.checkpoint(r)
	case *structure.Summary:
		return m.needing(r, m.needContext(r.Context, structure.ThreadID{}), m.needContent(r.Content), m.needSpan(r.From), m.needSpan(r.To))
	case *structure.Reflog:
		return m.needing(r, m.needContext(r.Context, structure.ThreadID{}), m.needSpan(r.From), m.needSpan(r.To))
	case *structure.Value:
		return m.value(r)
	case *structure.Cut:
		return nil // nothing was added behind it, and spans of this store have ids of its own
	case *structure.Deletion:
		err := m.apply(r)
		if errors.Is(err, backend.ErrNotFound) {
			return nil // it is gone already
		}
		return err
	}
	return m.apply(r)
}

// needing applies a record once everything is there that it needs.
func (m *mender) needing(r structure.Record, needs ...error) error {
	if err := errors.Join(needs...); err != nil {
		return err
	}
	return m.apply(r)
}

// branch applies a branch. Others can have its name or its source id if their deletions
// are gone.
func (m *mender) branch(r *structure.Branch) error {
	err := m.needing(r, m.needThread(r.Thread), m.needContext(r.Context, r.Thread))
	if !errors.Is(err, backend.ErrExists) {
		return err
	}
	others := map[string]bool{}
	if is, err := m.to.Branch(m.ctx, r.Thread, r.Name); err == nil && is.Context != r.Context {
		others[is.Name] = true
	}
	for b, err := range m.to.BranchesBySource(m.ctx, r.SourceID, r.Thread) {
		if err != nil {
			return err
		}
		others[b.Name] = true
	}
	return m.insteadOf(structure.KindBranch, r.Thread, others, r)
}

// checkpoint is branch for checkpoints.
func (m *mender) checkpoint(r *structure.Checkpoint) error {
	err := m.needing(r, m.needThread(r.Thread), m.needSpan(r.Span))
	if !errors.Is(err, backend.ErrExists) {
		return err
	}
	others := map[string]bool{}
	if is, err := m.to.Checkpoint(m.ctx, r.Thread, r.Name); err == nil && is.ID != r.ID {
		others[is.Name] = true
	}
	for k, err := range m.to.CheckpointsBySource(m.ctx, r.SourceID, r.Thread) {
		if err != nil {
			return err
		}
		others[k.Name] = true
	}
	return m.insteadOf(structure.KindCheckpoint, r.Thread, others, r)
}

// insteadOf applies what has a name after it deleted others of its kind.
func (m *mender) insteadOf(kind structure.Kind, thread structure.ThreadID, others map[string]bool, r structure.Record) error {
	var records []structure.Record
	for name := range others {
		records = append(records, &structure.Deletion{Subject: kind, Thread: thread, Name: name, At: m.at})
	}
	return m.apply(append(records, r)...)
}

func (m *mender) block(b *structure.Block) error {
	err := m.apply(b)
	if !refused(err) {
		return err
	}
	if b.Gone() { // it was erased and collected
		return m.erased(b)
	}
	return m.needContent(b.ID) // pieces of it are gone
}

func (m *mender) thread(t structure.Thread) error {
	active := t.Active
	t.Active = structure.ContextID{}
	if err := m.apply(&t); err != nil || active.IsZero() {
		return err
	}
	t.Active = active
	return m.needing(&t, m.needContext(active, t.ID))
}

func (m *mender) context(c structure.Context) error {
	var err error
	if !c.Parent.IsZero() {
		if _, err = m.to.Context(m.ctx, c.Parent); errors.Is(err, backend.ErrNotFound) {
			c.Parent, err = structure.ContextID{}, nil
		}
	}
	if err != nil {
		return err
	}
	if c.Set, err = m.setIfThere(c.Set); err != nil {
		return err
	}
	if err := errors.Join(m.needThread(c.Thread), m.needSpan(c.Base), m.needSpan(c.Tip)); err != nil {
		return err
	}
	if !m.madeUp[c.ID] {
		return m.apply(&c)
	}
	records, err := m.instead(&c)
	if err != nil {
		return err
	}
	values, err := m.valuesOf(c.ID)
	if err != nil {
		return err
	}
	delete(m.madeUp, c.ID)
	m.report.Names--
	if err := m.apply(records...); err != nil {
		return err
	}
	for i := range values {
		if err := m.apply(&values[i].Value); err != nil {
			return err
		}
	}
	return nil
}

func (m *mender) span(s structure.Span) error {
	if err := m.needSpansBefore(s.Ref); err != nil {
		return err
	}
	var err error
	if s.Set, err = m.setIfThere(s.Set); err != nil {
		return err
	}
	s.Usages = append([]structure.Usage(nil), s.Usages...)
	for i := range s.Usages {
		u := &s.Usages[i]
		for _, id := range u.Named(nil) {
			if err := m.needContent(*id); err != nil {
				return err
			}
		}
	}
	err = m.apply(&s)
	for i := range s.Usages {
		if !errors.Is(err, backend.ErrExists) {
			break
		}
		s.Usages[i].Lookup = 0 // the message that had it was deleted by a commit that is gone
		err = m.apply(&s)
	}
	return err
}
