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

// mender adds commits to a store that may lack some of the earlier ones.
type mender struct {
	ctx     context.Context
	to      *Engine
	writer  *write.Writer
	report  *SalvageReport
	pending *liveSet           // of the pending collection; nil for none
	at      time.Time          // of the current commit
	records []structure.Record // of the current commit
	note    *structure.Block
	// placeholders are contexts of which only the id is known.
	placeholders map[structure.ContextID]bool
	// remnants are what is left of deleted contexts. The store gets them with their forks.
	remnants map[structure.ContextID]*structure.Remnant
	// lost has the threads of which only the id is known; homes has the incarnations that
	// runs and values named last.
	lost  map[structure.ThreadID]bool
	homes map[structure.ThreadID]uint64
	// homeless has the runs whose thread is unknown, and the times at which they were
	// recreated.
	homeless map[structure.RunID]time.Time
}

func newMender(ctx context.Context, to *Engine, report *SalvageReport) *mender {
	// The record after the chunks of a body no longer proves that all of them are stored.
	to.collected.Store(true)
	m := &mender{
		ctx: ctx, to: to, report: report, placeholders: make(map[structure.ContextID]bool),
		remnants: make(map[structure.ContextID]*structure.Remnant), lost: make(map[structure.ThreadID]bool), homes: make(map[structure.ThreadID]uint64), homeless: make(map[structure.RunID]time.Time),
	}
	m.writer = write.New(to, func() time.Time { return m.at })
	return m
}

// commit adds a commit: unchanged if its references exist, otherwise record by record.
func (m *mender) commit(f journal.Frame) error {
	c, err := structure.DecodeCommit(f.Payload)
	if err != nil {
		return nil // the checksum is right but the content is not: a faulty program wrote it. It counts as missing.
	}
	m.report.Commits++
	c.Number = f.Number
	if m.pending.strip(c); len(c.Records) == 0 {
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

// put commits a batch that fill fills.
func (m *mender) put(fill func(b *write.Batch)) error {
	b := m.writer.Batch()
	defer m.writer.Release(b)
	fill(b)
	_, err := m.writer.Commit(m.ctx, b)
	return err
}

// apply commits records unchanged.
func (m *mender) apply(records ...structure.Record) error {
	return m.put(func(b *write.Batch) { b.Adopt(records...) })
}

// refused reports whether an error is about the applied records.
func refused(err error) bool {
	for _, kind := range []error{backend.ErrNotFound, backend.ErrConflict, backend.ErrExists, backend.ErrInvalid, backend.ErrErased} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// record adds one record, after replacements for what it refers to and is lost.
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
	case *structure.Remnant:
		m.remnants[r.ID] = r
		return nil
	case *structure.Cut:
		return nil // nothing was added after it, and spans of this store have new ids
	case *structure.Deletion:
		err := m.apply(r)
		if errors.Is(err, backend.ErrNotFound) {
			return nil // it is lost already
		}
		return err
	}
	return m.apply(r)
}

// needing applies a record unless one of its needs failed.
func (m *mender) needing(r structure.Record, needs ...error) error {
	if err := errors.Join(needs...); err != nil {
		return err
	}
	return m.apply(r)
}
