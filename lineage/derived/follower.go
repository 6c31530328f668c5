// Package derived keeps data that is computed from a store up to date with it: a search index, a projection, a list.
//
// Derived data can be deleted and rebuilt at any time, and several processes may update it at once. Its author
// implements Target, and a Follower does the rest:
//
//	feed:     … ─── At ─────────── To ──────────── Head ─── …
//	                 └── window ────┘                 └ State
//
// A pass takes a snapshot of the store, reads the feed from the position of the derived data to the snapshot, and
// calls Apply for one window of commits after the other. A window names the subjects that its commits changed. Apply
// reads them from the snapshot and writes what follows from that. The first pass reads the feed from its start.
//
// The position is a Mark, which the derived data keeps. Each transaction replaces the mark by compare-and-set, so
// of two processes one writes and the other starts over with a newer snapshot. The position never goes back.
//
// Rules for Apply:
//
//   - What it writes for a subject depends on the state of the subject in the snapshot, and not on the window. The
//     same window may be applied again, from a newer state.
//   - What the snapshot does not have is gone: deleted, erased, or removed by a collection, which the feed does not
//     report. What a subject refers to may be in a later window: its state is in the snapshot. Data that must not keep
//     what a collection removed is pruned: see Follower.Prune.
//   - Slow work is done before a transaction. What was read from the derived data before is still true in it, because
//     a transaction does nothing after another process has written.
//   - A transaction that takes longer than it may is ErrSlow. The window is applied again in smaller ones.
package derived

import (
	"context"
	"errors"
	"time"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
)

// Follower keeps derived data up to date with a store.
type Follower[Tx any] struct {
	Store  *lineage.Store
	Target Target[Tx]
	// Commits adds the commits to windows. A window ends when they have 8 MiB of content.
	Commits bool
	// Limit is the number of changed subjects at which a window ends, and with Commits also the number of records.
	// Default 250,000, with Commits 20,000.
	Limit int
	// Progress, when not nil, is called after each window but the last, with the number of applied commits.
	Progress func(done, total uint64)
	// Until, when not zero, lets Run end with ErrUnfinished after the first window that is applied later.
	Until time.Time
	// Prune lets Run end with a window without commits, in which Window.Prune is set.
	Prune bool
}

// ErrUnfinished is returned when there was no time to apply all commits. The next Run continues.
var ErrUnfinished = errors.New("derived data is not up to date")

// Run brings the data up to date. It can be interrupted at any point, even killed: completed transactions are kept,
// and the next run continues. Run itself also continues when another process was faster, when the state that it reads
// expires, or when a transaction was too slow. Data that was newer than the store when Run began is not changed.
func (f *Follower[Tx]) Run(ctx context.Context) (Report, error) {
	var r Report
	var s scale
	for {
		err := f.pass(ctx, &r, &s)
		switch {
		case errors.Is(err, errShrunk): // also when it is late: otherwise no run would get further
			continue
		case !errors.Is(err, errOvertaken) && !errors.Is(err, lineage.ErrExpired):
			return r, err
		}
		if f.late() {
			return r, ErrUnfinished
		}
	}
}

func (f *Follower[Tx]) late() bool { return !f.Until.IsZero() && time.Now().After(f.Until) }

// Follow calls run each time the store has changed after the commit that run returned. It ends when the context ends,
// the store is closed, or run fails.
func Follow(ctx context.Context, s *lineage.Store, run func(context.Context) (backend.Cursor, error)) error {
	for {
		at, err := run(ctx)
		if err != nil {
			return err
		}
		if _, err := s.View().Wait(ctx, at); err != nil {
			return err
		}
	}
}

// pass updates the data to the current state of the store.
func (f *Follower[Tx]) pass(ctx context.Context, r *Report, s *scale) error {
	state, err := f.Store.View().Snapshot(ctx)
	if err != nil {
		return err
	}
	defer state.Close()
	head, err := state.Head(ctx)
	if err != nil {
		return err
	}
	mark, err := f.Target.Mark(ctx)
	if err != nil {
		return err
	}
	done := mark.Settled() && mark.At.Number >= head.Number
	if err := mark.checkStore(f.Store); err != nil {
		return err
	}
	if done || !mark.Settled() { // otherwise the feed below begins with the same cursor
		if err := mark.Check(ctx, f.Store); err != nil {
			return err
		}
	}
	if r.Transactions == 0 {
		r.From = mark.At
	}
	if r.To = mark.At; done && !f.Prune {
		return nil
	}
	if mark.Seen.Number > head.Number {
		return errOvertaken
	}
	p := &pass[Tx]{
		store: f.Store, target: f.Target, commits: f.Commits, state: state, head: head, mark: mark, fresh: mark.Version == 0, report: r, scale: s,
	}
	if !mark.Settled() {
		p.seen = mark.Seen.Number
	}
	if !done {
		if err := f.apply(ctx, p); err != nil {
			return err
		}
	}
	if !f.Prune {
		return nil
	}
	w := p.window()
	w.Prune = true
	return w.apply(ctx)
}

// Limits of a window.
const (
	maxBytes       = 8 << 20
	defaultLimit   = 250_000
	defaultRecords = 20_000
)

// apply applies the commits between the mark and the head.
func (f *Follower[Tx]) apply(ctx context.Context, p *pass[Tx]) error {
	limit := f.Limit
	if limit <= 0 {
		if limit = defaultLimit; f.Commits {
			limit = defaultRecords
		}
	}
	first, w := p.mark.At.Number, p.window()
	for c, err := range f.Store.View().Feed(ctx, p.mark.At) {
		if err != nil {
			return err
		}
		if c.Number > p.head.Number {
			break
		}
		w.add(c)
		if c.Number == p.head.Number || w.size() < p.scale.of(limit) && w.bytes <= int64(p.scale.of(maxBytes)) {
			continue
		}
		if err := w.apply(ctx); err != nil {
			return p.scale.failed(err, w.size(), limit)
		}
		p.scale.applied()
		if f.Progress != nil {
			f.Progress(c.Number-first, p.head.Number-first)
		}
		if f.late() {
			return ErrUnfinished
		}
		w = p.window()
	}
	w.To = p.head
	return p.scale.failed(w.apply(ctx), w.size(), limit)
}
