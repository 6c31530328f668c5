// Package salvage adds the commits of a damaged store, some of which are lost, to a new store. If a commit refers to
// something lost, that is replaced.
package salvage

import (
	"context"
	"errors"
	"time"

	"github.com/lineage-store/lineage/internal/embedded/live"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Report is the result of a salvage.
type Report struct {
	// Commits is the number of commits that were read, and Missing the number known to be
	// lost. More may be lost at the end.
	Commits uint64 `json:"commits"`
	Missing uint64 `json:"missing"`
	// Losses is the number of unreadable parts of the journal.
	Losses uint64 `json:"losses"`
	// Messages is the number of lost messages whose places are known. Each is replaced by a note.
	Messages uint64 `json:"messages"`
	// Contents is the number of lost contents that messages refer to. They read as erased.
	Contents uint64 `json:"contents"`
	// Names is the number of threads, contexts and runs of which only the id was known and that were recreated. A
	// context whose thread is lost gets a new thread, and so does a run that is in no context.
	Names uint64 `json:"names"`
	// Records is the number of other records that were dropped because their subject is
	// lost.
	Records uint64 `json:"records"`
}

// Whole reports whether no loss is known.
func (r *Report) Whole() bool { return r.Missing == 0 && r.Losses == 0 }

// Mender adds commits to a store that may lack some of the earlier ones.
type Mender struct {
	// Pending is the live set of the damaged store's pending collection, nil for none.
	Pending *live.Set

	ctx     context.Context
	to      backend.Engine
	writer  *write.Writer
	report  *Report
	at      time.Time          // of the current commit
	records []structure.Record // of the current commit
	note    *structure.Block
	// placeholders are contexts of which only the id is known.
	placeholders map[structure.ContextID]bool
	// remnants are the remnants of deleted contexts. They are added together with their forks.
	remnants map[structure.ContextID]*structure.Remnant
	// lost has the threads of which only the id is known. homes has the incarnations that runs and values named last.
	lost  map[structure.ThreadID]bool
	homes map[structure.ThreadID]uint64
	// homeless has the runs whose thread is unknown, with the times at which they were recreated.
	homeless map[structure.RunID]time.Time
}

// New returns a mender that writes to a new store and counts in a report.
func New(ctx context.Context, to backend.Engine, report *Report) *Mender {
	m := &Mender{
		ctx: ctx, to: to, report: report, placeholders: make(map[structure.ContextID]bool),
		remnants: make(map[structure.ContextID]*structure.Remnant), lost: make(map[structure.ThreadID]bool), homes: make(map[structure.ThreadID]uint64), homeless: make(map[structure.RunID]time.Time),
	}
	m.writer = write.New(to, func() time.Time { return m.at })
	return m
}

// Commit adds a commit: unchanged if its references exist, otherwise record by record.
func (m *Mender) Commit(f journal.Frame) error {
	c, err := structure.DecodeCommit(f.Payload)
	if err != nil {
		return nil // the checksum is right but the content is not, so a faulty program wrote it; it counts as missing
	}
	m.report.Commits++
	c.Number = f.Number
	if m.Pending.Strip(c); len(c.Records) == 0 {
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
func (m *Mender) put(fill func(b *write.Batch)) error {
	b := m.writer.Batch()
	defer m.writer.Release(b)
	fill(b)
	_, err := m.writer.Commit(m.ctx, b)
	return err
}

// apply commits records unchanged.
func (m *Mender) apply(records ...structure.Record) error {
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

// record adds one record. Before that, it adds replacements for lost things that the record refers to.
func (m *Mender) record(r structure.Record) error {
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
func (m *Mender) needing(r structure.Record, needs ...error) error {
	if err := errors.Join(needs...); err != nil {
		return err
	}
	return m.apply(r)
}
