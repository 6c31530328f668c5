package embedded

import (
	"context"
	"errors"
	"time"

	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// mender brings commits into a store that lacks some of what came before them.
type mender struct {
	ctx     context.Context
	to      *Engine
	writer  *write.Writer
	report  *SalvageReport
	pending *liveSet           // of the collection that was pending; nil for none
	at      time.Time          // of the commit that is brought
	records []structure.Record // of it
	note    *structure.Block
	// madeUp are the contexts of which only the id is known.
	madeUp map[structure.ContextID]bool
	// lost are the threads of which only the id is known, and homes the incarnations that
	// runs and values named last.
	lost  map[structure.ThreadID]bool
	homes map[structure.ThreadID]uint64
	// homeless are the runs of which not even the thread is known, with the times at which
	// they were made up.
	homeless map[structure.RunID]time.Time
}

func newMender(ctx context.Context, to *Engine, report *SalvageReport) *mender {
	// That pieces of a body are stored is not said by the last of them any more.
	to.collected.Store(true)
	m := &mender{
		ctx: ctx, to: to, report: report, madeUp: make(map[structure.ContextID]bool),
		lost: make(map[structure.ThreadID]bool), homes: make(map[structure.ThreadID]uint64), homeless: make(map[structure.RunID]time.Time),
	}
	m.writer = write.New(to, func() time.Time { return m.at })
	return m
}

// commit brings a commit: as it is, if what it needs is there, else record by record.
func (m *mender) commit(f journal.Frame) error {
	c, err := structure.DecodeCommit(f.Payload)
	if err != nil {
		return nil // written by a program that was wrong, for its checksum is right: it is missing
	}
	m.report.Commits++
	c.Number = f.Number
	if m.pending.leave(c); len(c.Records) == 0 {
		return nil
	}
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

// put commits what fill puts into a batch.
func (m *mender) put(fill func(b *write.Batch)) error {
	b := m.writer.Batch()
	defer m.writer.Release(b)
	fill(b)
	_, err := m.writer.Commit(m.ctx, b)
	return err
}

// apply commits records as they are.
func (m *mender) apply(records ...structure.Record) error {
	return m.put(func(b *write.Batch) { b.Adopt(records...) })
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
