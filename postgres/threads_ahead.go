package postgres

import (
	"context"

	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

var _ backend.ThreadsAhead = (*snapshot)(nil)

// ThreadsAhead implements backend.ThreadsAhead. Later reads of the snapshot find here what it has read.
func (s *snapshot) ThreadsAhead(ctx context.Context, ids []structure.ThreadID) error {
	t, err := s.reader(ctx, need{})
	if err != nil {
		return err
	}
	before := t.fetched.older
	var threads read.Need
	for _, id := range ids {
		threads.Keys = append(threads.Keys, keys.Of(keys.TableThread, id[:]))
	}
	if err := t.Prefetch(ctx, threads); err != nil {
		return err
	}
	n, active := t.threadsNeed(ids)
	f, err := t.fetch(ctx, n)
	if err != nil {
		return err
	}
	t.take(n, f)
	t.keepPages(n, f) // the branches of other threads are read when they are asked for
	var runs read.Need
	var empty []structure.ThreadID // of these, the contexts of subagents are read next
	for _, id := range active {
		switch c, err := read.Context(t, id); {
		case err != nil:
		case c.Tip.IsZero():
			empty = append(empty, c.Thread)
		default:
			runs.Keys = append(runs.Keys, keys.Of(keys.TableRun, c.Tip.Run[:]))
		}
	}
	contexts, err := t.prefetchContexts(ctx, empty)
	if err != nil {
		return err
	}
	for _, c := range contexts {
		for _, at := range []structure.SpanRef{c.Tip, c.Base} {
			if !at.IsZero() {
				runs.Keys = append(runs.Keys, keys.Of(keys.TableRun, at.Run[:]))
			}
		}
	}
	if err := t.Prefetch(ctx, runs); err != nil {
		return err
	}
	s.keepAhead(t, before)
	return nil
}

// prefetchContexts prefetches the contexts of threads, and returns the first ones of each. Contexts that cannot be read are left
// out: their readers get the error.
func (t *stateReader) prefetchContexts(ctx context.Context, threads []structure.ThreadID) (contexts []backend.Context, err error) {
	if len(threads) == 0 {
		return nil, nil
	}
	var n need
	for _, id := range threads {
		n.pages = append(n.pages, entryPage{read.Under(keys.Of(keys.TableContextOfThread, id[:])), firstPage, false})
	}
	f, err := t.fetch(ctx, n)
	if err != nil {
		return nil, err
	}
	t.keepPages(n, f)
	var referred read.Need
	for _, p := range f.pages {
		referred.Keys = append(referred.Keys, references(p.entries).Keys...)
	}
	if err := t.Prefetch(ctx, referred); err != nil {
		return nil, err
	}
	for _, p := range f.pages {
		for _, e := range p.entries {
			if c, err := read.Context(t, structure.ContextID(e.Key[len(e.Key)-16:])); err == nil {
				contexts = append(contexts, c)
			}
		}
	}
	return contexts, nil
}

// keepPages keeps the pages that have all entries of their ranges.
func (t *stateReader) keepPages(n need, f fetchResult) {
	for i, p := range f.pages {
		if !p.more {
			r := n.pages[i].Range
			t.fetched.recent.ranges = append(t.fetched.recent.ranges, fetchedRange{r, inRange(p.entries, r.From, r.To)})
		}
	}
}

// ReachAhead implements backend.ThreadsAhead. Later reads of the snapshot find here what it has read.
func (s *snapshot) ReachAhead(ctx context.Context, ids []structure.ThreadID) error {
	t, err := s.reader(ctx, need{})
	if err != nil {
		return err
	}
	before := t.fetched.older
	var n need
	for _, id := range ids {
		n.Keys = append(n.Keys, keys.Of(keys.TableThread, id[:]))
		for _, table := range []byte{keys.TableContextOfThread, keys.TableCheckpoint} {
			n.pages = append(n.pages, entryPage{read.Under(keys.Of(table, id[:])), firstPage, false})
		}
	}
	f, err := t.fetch(ctx, n)
	if err != nil {
		return err
	}
	t.take(n, f)
	t.keepPages(n, f)
	var contexts read.Need
	for _, p := range f.pages {
		contexts.Keys = append(contexts.Keys, references(p.entries).Keys...)
	}
	if err := t.Prefetch(ctx, contexts); err != nil {
		return err
	}
	if err := t.prefetchPaths(ctx, t.tipsOf(f.pages)); err != nil {
		return err
	}
	if err := t.prefetchKept(ctx, ids); err != nil {
		return err
	}
	s.keepAhead(t, before)
	return nil
}

// prefetchPaths prefetches runs and all runs before them.
func (t *stateReader) prefetchPaths(ctx context.Context, runs []structure.RunID) error {
	seen := make(map[structure.RunID]bool)
	for len(runs) > 0 {
		var n read.Need
		for _, id := range runs {
			n.Keys = append(n.Keys, keys.Of(keys.TableRun, id[:]))
		}
		if err := t.Prefetch(ctx, n); err != nil {
			return err
		}
		runs = t.parentsOf(runs, seen)
	}
	return nil
}

// tipsOf returns the runs to which pages of contexts and checkpoints lead. What cannot be read is left out: its readers get the
// error.
func (t *stateReader) tipsOf(pages []foundPage) (runs []structure.RunID) {
	for _, p := range pages {
		for _, e := range p.entries {
			var at structure.SpanRef
			switch e.Key[0] {
			case keys.TableContextOfThread:
				if c, err := read.Context(t, structure.ContextID(e.Key[len(e.Key)-16:])); err == nil {
					at = c.Tip
				}
			case keys.TableCheckpoint:
				if c, err := keys.Record[*structure.Checkpoint](structure.KindCheckpoint, e.Value, ""); err == nil {
					at = c.Span
				}
			}
			if !at.IsZero() {
				runs = append(runs, at.Run)
			}
		}
	}
	return runs
}

// parentsOf returns the runs before some, which were read, without those that were seen before. So it ends, also if damaged runs
// follow each other.
func (t *stateReader) parentsOf(runs []structure.RunID, seen map[structure.RunID]bool) (parents []structure.RunID) {
	for _, id := range runs {
		run, err := read.Run(t, id)
		if parent := run.Parent.Run; err == nil && !run.Parent.IsZero() && !seen[parent] {
			seen[parent] = true
			parents = append(parents, parent)
		}
	}
	return parents
}

// RunsAhead implements backend.ThreadsAhead. Later reads of the snapshot find here what it has read.
func (s *snapshot) RunsAhead(ctx context.Context, ids []structure.RunID) error {
	var n need
	for _, id := range ids {
		n.Keys = append(n.Keys, keys.Of(keys.TableRun, id[:]))
	}
	t, err := s.reader(ctx, n)
	if err == nil {
		s.keepAhead(t, t.fetched.older)
	}
	return err
}

// LastsAhead implements backend.ThreadsAhead. Later reads of the snapshot find here what it has read.
func (s *snapshot) LastsAhead(ctx context.Context, ids []structure.RunID) error {
	t, err := s.reader(ctx, need{})
	if err != nil {
		return err
	}
	before := t.fetched.older
	if err := t.prefetchLasts(ctx, ids); err != nil {
		return err
	}
	s.keepAhead(t, before)
	return nil
}

// keepAhead keeps for later reads of the snapshot what a reader has read, and what was read before if it is little.
func (s *snapshot) keepAhead(t *stateReader, before entrySet) {
	if len(before.values) < mostWarm {
		t.fetched.add(before)
	}
	s.ahead.Store(t)
}

// prefetchLasts prefetches the last spans of runs, and all runs before them.
func (t *stateReader) prefetchLasts(ctx context.Context, runs []structure.RunID) error {
	var n read.Need
	for _, id := range runs {
		n.Lasts = append(n.Lasts, read.Under(keys.Of(keys.TableSpan, id[:])))
	}
	if err := t.Prefetch(ctx, n); err != nil {
		return err
	}
	return t.prefetchPaths(ctx, runs)
}

// prefetchKept prefetches the first runs of the threads that keep their runs. Threads that cannot be read are left out: their
// readers get the error.
func (t *stateReader) prefetchKept(ctx context.Context, threads []structure.ThreadID) error {
	var n need
	for _, id := range threads {
		v, ok, err := t.Get(keys.Of(keys.TableThread, id[:]))
		if err != nil || !ok {
			continue
		}
		if thread, err := keys.Record[*structure.Thread](structure.KindThread, v, id.String()); err == nil && thread.Keeps {
			n.pages = append(n.pages, entryPage{read.Under(keys.Of(keys.TableRunOfThread, id[:])), firstPage, false})
		}
	}
	if len(n.pages) == 0 {
		return nil
	}
	f, err := t.fetch(ctx, n)
	if err != nil {
		return err
	}
	t.keepPages(n, f)
	var runs []structure.RunID
	for _, p := range f.pages {
		for _, e := range p.entries {
			runs = append(runs, structure.RunID(e.Key[len(e.Key)-16:]))
		}
	}
	return t.prefetchLasts(ctx, runs)
}

// threadsNeed returns what readers of threads read next: last messages, active contexts, and the first branches. It returns the
// active contexts, too. Threads that cannot be read are left out: their readers get the error.
func (t *stateReader) threadsNeed(ids []structure.ThreadID) (n need, active []structure.ContextID) {
	for _, id := range ids {
		v, ok, err := t.Get(keys.Of(keys.TableThread, id[:]))
		if err != nil || !ok {
			continue
		}
		thread, err := keys.Record[*structure.Thread](structure.KindThread, v, id.String())
		if err != nil {
			continue
		}
		n.Keys = append(n.Keys, keys.AppendMessage(nil, thread.Home()))
		if c := thread.Active; !c.IsZero() {
			active = append(active, c)
			n.Keys = append(n.Keys, keys.Of(keys.TableContext, c[:]), keys.Of(keys.TableTip, c[:]))
		}
		n.pages = append(n.pages, entryPage{read.Under(keys.Branch(id, "")), firstPage, false})
	}
	return n, active
}
