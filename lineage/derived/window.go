package derived

import (
	"context"
	"errors"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Target keeps derived data. Tx is its transaction.
type Target[Tx any] interface {
	// Mark returns the mark after the last transaction.
	Mark(ctx context.Context) (Mark, error)
	// Write runs a function in a transaction, which is committed completely or not at all. It may run the function
	// more than once.
	Write(ctx context.Context, do func(tx Tx) error) error
	// Swap replaces the mark in a transaction if it still equals was, and reports whether it did. It is the first
	// statement of a transaction. Of two concurrent transactions, the second one waits or fails.
	Swap(ctx context.Context, tx Tx, was, now Mark) (bool, error)
	// Apply applies a window. It must write only with Window.Write and Window.Finish.
	Apply(ctx context.Context, w *Window[Tx]) error
}

// Window is a range of commits to apply.
type Window[Tx any] struct {
	// State is the state of the store at commit Head. It is valid until Apply returns.
	State backend.Snapshot
	Head  backend.Cursor
	// From and To delimit the commits: those after From, up to To.
	From, To backend.Cursor
	// Fresh is set if all of the data is of State. At the first window of such a pass, the data is empty.
	Fresh bool
	// Again is set if an earlier pass, which was interrupted, may have applied changes of this window from an older
	// state.
	Again   bool
	Changes *Changes
	// Prune is set if Apply must remove what State no longer has. All of the data is of State then, and there are no
	// changes.
	Prune bool
	// Commits are the commits, if Follower.Commits is set. They must not be changed.
	Commits []*structure.Commit

	pass     *pass[Tx]
	records  int
	bytes    int64
	finished bool
}

// pass is the state of a pass.
type pass[Tx any] struct {
	store   *lineage.Store
	target  Target[Tx]
	commits bool // see Follower.Commits
	state   backend.Snapshot
	head    backend.Cursor
	mark    Mark   // as of the last transaction
	next    Mark   // of the last attempted transaction
	seen    uint64 // the newest state of an earlier, interrupted pass
	fresh   bool   // the data was empty
	report  *Report
	scale   *scale
}

// window returns an empty window that starts at the mark.
func (p *pass[Tx]) window() *Window[Tx] {
	at := p.mark.At
	return &Window[Tx]{
		State: p.state, Head: p.head, From: at, To: at, Fresh: p.fresh, Again: at.Number < p.seen, Changes: NewChanges(), pass: p,
	}
}

// add adds a commit.
func (w *Window[Tx]) add(c *structure.Commit) {
	w.To = backend.Cursor{Number: c.Number, ID: c.ID}
	for _, r := range c.Records {
		w.Changes.add(r)
	}
	if !w.pass.commits {
		return
	}
	w.Commits = append(w.Commits, c)
	w.records += len(c.Records)
	for _, r := range c.Records {
		switch r := r.(type) {
		case *structure.Block:
			w.bytes += r.Size // also of a chunked body, because Apply may read it
		case *structure.Chunk:
			w.bytes += int64(len(r.Bytes))
		}
	}
}

// size returns the number of changed subjects, and of records if it has the commits.
func (w *Window[Tx]) size() int { return w.Changes.len() + w.records }

// Most returns how much of something a transaction should write at most: n, or less after one was too slow.
func (w *Window[Tx]) Most(n int) int { return w.pass.scale.of(n) }

// apply applies the window. An error that occurs while another process writes is not reported, because Apply may have
// read only a part of what the other process wrote.
func (w *Window[Tx]) apply(ctx context.Context) error {
	target := w.pass.target
	err := target.Apply(ctx, w)
	if err == nil && !w.finished {
		err = w.Finish(ctx, nil)
	}
	if err == nil || errors.Is(err, errOvertaken) || errors.Is(err, lineage.ErrExpired) || errors.Is(err, ErrSlow) || ctx.Err() != nil {
		return err
	}
	if now, markErr := target.Mark(ctx); markErr == nil && now != w.pass.mark && now != w.pass.next {
		return errOvertaken
	}
	return err
}

// Write runs a function in a transaction that does not advance the position. If the pass ends before Finish,
// everything of the window is written again. The function may run more than once.
func (w *Window[Tx]) Write(ctx context.Context, do func(tx Tx) error) error {
	return w.write(ctx, w.From, do)
}

// Finish runs a function in the last transaction of the window, which advances the position to its end. The function
// may run more than once, and may be nil. If Apply does not call Finish, the follower does.
func (w *Window[Tx]) Finish(ctx context.Context, do func(tx Tx) error) error {
	err := w.write(ctx, w.To, do)
	w.finished = w.finished || err == nil
	return err
}

func (w *Window[Tx]) write(ctx context.Context, at backend.Cursor, do func(tx Tx) error) error {
	p := w.pass
	mark := Mark{Store: p.store.ID(), At: at, Seen: w.Head, Version: p.mark.Version + 1}
	p.next = mark
	err := p.target.Write(ctx, func(tx Tx) error {
		swapped, err := p.target.Swap(ctx, tx, p.mark, mark)
		if err == nil && !swapped {
			err = errOvertaken
		}
		if err != nil || do == nil {
			return err
		}
		return do(tx)
	})
	if err != nil {
		return err
	}
	p.mark = mark
	p.report.To = at
	p.report.Transactions++
	return nil
}
