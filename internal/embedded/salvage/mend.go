// Package salvage adds the commits of a damaged store, some of which are lost, to a new store. If a commit refers to
// something lost, that is replaced.
package salvage

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/lineage-store/lineage/internal/embedded/live"
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

// needing applies a record unless one of its needs failed.
func (m *Mender) needing(r structure.Record, needs ...error) error {
	if err := errors.Join(needs...); err != nil {
		return err
	}
	return m.apply(r)
}

// setIfThere returns the id of a span set, or zero if it is lost.
func (m *Mender) setIfThere(id structure.SpanSetID) (structure.SpanSetID, error) {
	if id.IsZero() {
		return id, nil
	}
	_, err := m.to.SpanSet(m.ctx, id)
	if errors.Is(err, backend.ErrNotFound) {
		return structure.SpanSetID{}, nil
	}
	return id, err
}

// valuesOf returns all versions of all values of a context, oldest first.
func (m *Mender) valuesOf(id structure.ContextID) (all []backend.Value, err error) {
	for latest, err := range m.to.Values(m.ctx, structure.Owner{Scope: structure.ContextScope, Context: id}, "", "") {
		if err != nil {
			return nil, err
		}
		for v, err := range m.to.ValueHistory(m.ctx, latest.ValueKey) {
			if err != nil {
				return nil, err
			}
			all = append(all, v)
		}
	}
	slices.SortFunc(all, func(a, b backend.Value) int { return cmp.Compare(a.Commit, b.Commit) })
	return all, nil
}
