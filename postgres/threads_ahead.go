package postgres

import (
	"bytes"
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
	for _, id := range active {
		if c, err := read.Context(t, id); err == nil && !c.Tip.IsZero() {
			runs.Keys = append(runs.Keys, bytes.Clone(keys.Of(keys.TableRun, c.Tip.Run[:])))
		}
	}
	if err := t.Prefetch(ctx, runs); err != nil {
		return err
	}
	s.ahead.Store(t)
	return nil
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
	var n need
	for _, id := range ids {
		for _, table := range []byte{keys.TableContextOfThread, keys.TableCheckpoint} {
			n.pages = append(n.pages, entryPage{read.Under(keys.Of(table, id[:])), firstPage, false})
		}
	}
	f, err := t.fetch(ctx, n)
	if err != nil {
		return err
	}
	t.keepPages(n, f)
	var contexts read.Need
	for _, p := range f.pages {
		contexts.Keys = append(contexts.Keys, references(p.entries).Keys...)
	}
	if err := t.Prefetch(ctx, contexts); err != nil {
		return err
	}
	for ahead := t.tipsOf(f.pages); len(ahead) > 0; ahead = t.parentsOf(ahead) {
		var runs read.Need
		for _, id := range ahead {
			runs.Keys = append(runs.Keys, keys.Of(keys.TableRun, id[:]))
		}
		if err := t.Prefetch(ctx, runs); err != nil {
			return err
		}
	}
	s.ahead.Store(t)
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

// parentsOf returns the runs before some, which were read.
func (t *stateReader) parentsOf(runs []structure.RunID) (parents []structure.RunID) {
	seen := make(map[structure.RunID]bool)
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
		s.ahead.Store(t)
	}
	return err
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
