package server

import (
	"context"
	"errors"
	"math"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// eventFilter selects the events for a stream.
//
// A caller that may read only some threads gets the events of those that it may read now, with all of their past. A thread
// that was deleted has no events any more, even if another one has its id: an event is of the thread that is there only if
// no deletion follows between the event and the state in which the thread was found. So for such a caller the commits
// are read ahead up to a state before they are sent.
type eventFilter struct {
	store   *lineage.Store
	caller  *caller
	threads map[lineage.ThreadID]bool // empty for all
	// homes are the threads of contexts. A context that is made under the id of a deleted one states its thread.
	homes map[lineage.ContextID]lineage.ThreadID

	// state is what the caller may see after the commits that are being sent. It is nil for the whole store.
	state backend.Snapshot
	// ahead counts the deletions of threads that are yet to be sent. Those of threads and contexts of the state, whose
	// ids were used again, are also counted by id.
	ahead         int
	aheadThreads  map[lineage.ThreadID]int
	aheadContexts map[lineage.ContextID]int
}

// maxHomes limits the contexts whose threads are cached.
const maxHomes = 10_000

// begin prepares for the events of the commits after a position, and returns the number of the last commit that it is
// prepared for. It calls beat while it reads. The caller calls end when the events were sent.
func (f *eventFilter) begin(ctx context.Context, after lineage.Cursor, beat func() error) (to uint64, end func(), err error) {
	if f.caller.scope.All() {
		return math.MaxUint64, func() {}, nil
	}
	if f.state, err = f.store.View().Snapshot(ctx); err != nil {
		return 0, nil, err
	}
	end = func() { _ = f.state.Close() } // it was read only
	head, err := f.state.Head(ctx)
	if err == nil {
		err = f.readAhead(ctx, after, head.Number, beat)
	}
	if err != nil {
		end()
		return 0, nil, err
	}
	return head.Number, end, nil
}

// readAhead counts the deletions in the commits after a position, up to the state. A collection keeps deletions in the feed.
func (f *eventFilter) readAhead(ctx context.Context, after lineage.Cursor, to uint64, beat func() error) error {
	f.ahead, f.aheadThreads, f.aheadContexts = 0, make(map[lineage.ThreadID]int), make(map[lineage.ContextID]int)
	for c, err := range f.store.View().Feed(ctx, after) {
		if err == nil {
			err = beat()
		}
		if err != nil {
			return err
		}
		if c.Number > to {
			break
		}
		for _, r := range c.Records {
			d, ok := r.(*structure.Deletion)
			switch {
			case !ok:
			case d.Subject == structure.KindThread:
				f.ahead++
				if exists, err := f.caller.scope.HasThread(ctx, f.state, d.Thread); err != nil {
					return err
				} else if exists {
					f.aheadThreads[d.Thread]++
				}
			case d.Subject == structure.KindContext:
				if _, err := f.state.Context(ctx, d.Context); err == nil {
					f.aheadContexts[d.Context]++
				} else if !errors.Is(err, lineage.ErrNotFound) {
					return err
				}
			}
		}
	}
	return nil
}

// passed follows the events, whether they are sent or not.
func (f *eventFilter) passed(e *lineage.Event) {
	switch e.Kind {
	case lineage.ThreadDeleted:
		f.ahead--
		passed(f.aheadThreads, e.Thread)
	case lineage.ContextDeleted:
		passed(f.aheadContexts, e.Context)
	}
}

func passed[ID comparable](ahead map[ID]int, id ID) {
	if n := ahead[id]; n > 1 {
		ahead[id] = n - 1
	} else {
		delete(ahead, id)
	}
}

// sends reports whether an event is sent. Events without a thread, such as those of content, are sent only to streams
// of the whole store. The deletion of a context whose thread is unknown is also sent to streams of single threads,
// but not to callers that may read only some threads.
func (f *eventFilter) sends(ctx context.Context, change *lineage.Change, e *lineage.Event) (bool, error) {
	whole := f.caller.scope.All()
	if len(f.threads) == 0 && whole {
		return true, nil
	}
	thread, err := f.thread(ctx, change, e)
	if err != nil {
		return false, err
	}
	if thread.IsZero() {
		return e.Kind == lineage.ContextDeleted && whole, nil
	}
	if len(f.threads) > 0 && !f.threads[thread] {
		return false, nil
	}
	if whole {
		return true, nil
	}
	if f.aheadThreads[thread] > 0 {
		return false, nil
	}
	// The caller may have lost the thread since the state was taken, so the thread is looked up in the store too. That lookup
	// alone is not enough, because the store may have a later thread with the same id.
	for _, state := range []backend.Reader{f.state, f.store.View()} {
		if has, err := f.caller.scope.HasThread(ctx, state, thread); err != nil || !has {
			return false, err
		}
	}
	return true, nil
}

// thread returns the thread of an event, zero if it has none or it is unknown.
func (f *eventFilter) thread(ctx context.Context, change *lineage.Change, e *lineage.Event) (lineage.ThreadID, error) {
	if e.Context.IsZero() {
		return e.Thread, nil
	}
	if !e.Thread.IsZero() {
		f.remember(e.Context, e.Thread)
		return e.Thread, nil
	}
	if home, known := f.homes[e.Context]; known {
		return home, nil
	}
	var state backend.Reader = f.store.View()
	if f.state != nil {
		state = f.state
	}
	c, err := state.Context(ctx, e.Context)
	same := err == nil
	if same && f.state != nil {
		same, err = f.same(ctx, &c, change, e)
	}
	if errors.Is(err, lineage.ErrNotFound) || err == nil && !same {
		return lineage.ThreadID{}, nil
	}
	if err != nil {
		return lineage.ThreadID{}, err
	}
	f.remember(e.Context, c.Thread)
	return c.Thread, nil
}

// same reports whether the context of an event is the one that the state has under its id, and not an earlier one that was
// deleted with a thread, which the feed does not report. It is the same if it has not changed since the event, or if the event is
// about messages that were written for the thread of the state. If neither is known, it counts as another.
func (f *eventFilter) same(ctx context.Context, c *backend.Context, change *lineage.Change, e *lineage.Event) (bool, error) {
	switch {
	case f.aheadContexts[e.Context] > 0:
		return false, nil
	case f.ahead == 0 || c.Moved <= change.Commit.Number:
		return true, nil
	}
	at := e.Span
	if at.IsZero() {
		at = seen(change, e)
	}
	for _, at := range []lineage.SpanRef{at, e.From} {
		if at.IsZero() {
			continue
		}
		home, err := backend.HomeOf(ctx, f.state, at.Run)
		if err == nil && home != nil && home.ID == c.Thread {
			return true, nil
		}
		if err != nil && !errors.Is(err, lineage.ErrNotFound) {
			return false, err
		}
	}
	return false, nil
}

// seen returns the tip that a context had when a value of it was set.
func seen(change *lineage.Change, e *lineage.Event) lineage.SpanRef {
	for _, r := range change.Records {
		if v, ok := r.(*structure.Value); ok && v.Owner == e.Owner && v.Key == e.Name {
			return v.Seen
		}
	}
	return lineage.SpanRef{}
}

func (f *eventFilter) remember(id lineage.ContextID, thread lineage.ThreadID) {
	if len(f.homes) >= maxHomes {
		clear(f.homes)
	}
	f.homes[id] = thread
}
