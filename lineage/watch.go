package lineage

import (
	"context"
	"iter"
	"time"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// EventKind is the kind of an event.
type EventKind string

// The kinds of event. ContextCreated is also the kind if the overrides or metadata of a context change while its tip
// is still its base.
const (
	ThreadCreated     EventKind = "thread created"
	ThreadUpdated     EventKind = "thread updated"
	ThreadDeleted     EventKind = "thread deleted"
	ContextCreated    EventKind = "context created"
	ContextUpdated    EventKind = "context updated"
	ContextDeleted    EventKind = "context deleted"
	ContextExtended   EventKind = "context extended"
	ContextMoved      EventKind = "context moved"
	BranchSet         EventKind = "branch set"
	BranchDeleted     EventKind = "branch deleted"
	CheckpointSet     EventKind = "checkpoint set"
	CheckpointDeleted EventKind = "checkpoint deleted"
	SpanSetOffered    EventKind = "span set offered"
	Summarized        EventKind = "summarized"
	SummaryDeleted    EventKind = "summary deleted"
	ContentStored     EventKind = "content stored"
	ContentErased     EventKind = "content erased"
	ValueSet          EventKind = "value set"
	ValueDeleted      EventKind = "value deleted"
)

// Event is one effect of a commit. Kind determines which fields are set.
//
// For a moved context, From is its previous tip. For an extended one, From is the last span of its history that was
// in the store before the commit. The commit added the spans after it, up to Span. If the context adopted existing
// spans, as Choose and imports do, From is not its previous tip, and is Span itself if nothing was added.
// Context.Watch yields every entry in all cases.
type Event struct {
	Kind       EventKind
	Thread     ThreadID
	Context    ContextID
	Parent     ContextID // of a context created
	Span       SpanRef   // of the context or checkpoint; the position of the set; the end of the summary
	From       SpanRef   // see above
	Name       string    // of a branch or checkpoint; the reason of a move; the key of a value
	Owner      Owner     // of a value
	Content    ContentID
	Checkpoint structure.CheckpointID
	Summary    structure.SummaryID
	Set        structure.SpanSetID
}

// Cursor is a position in the commits of a store: the last commit that was seen. The zero cursor is before the first.
//
//	Number uint64
//	ID     uint64 // 0 stands for any commit with the number
type Cursor = backend.Cursor

// Change is a commit as seen by a watcher.
type Change struct {
	// Commit is the cursor to continue after this change.
	Commit Cursor
	Time   time.Time
	Events []Event
	// Records are the records of the commit. They must not be changed.
	Records []structure.Record
}

// Watch yields every commit after a cursor, once and in order, and then waits for more until ctx ends or the store is
// closed. A slow watcher delays no other. If the commit of the cursor is not in the store, the error is ErrDiverged:
// the commit was lost in a power failure, or the store is a copy that was continued differently.
func (s *Store) Watch(ctx context.Context, after Cursor) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		for {
			for c, err := range s.engine.Feed(ctx, after) {
				if err != nil {
					yield(Change{}, err)
					return
				}
				after = Cursor{Number: c.Number, ID: c.ID}
				change, err := s.changeOf(ctx, c)
				if !yield(change, err) || err != nil {
					return
				}
			}
			if _, err := s.engine.Wait(ctx, after); err != nil {
				yield(Change{}, err)
				return
			}
		}
	}
}

// Changes yields the commits after a cursor up to the current last one.
func (s *Store) Changes(ctx context.Context, after Cursor) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		for c, err := range s.engine.Feed(ctx, after) {
			if err != nil {
				yield(Change{}, err)
				return
			}
			change, err := s.changeOf(ctx, c)
			if !yield(change, err) || err != nil {
				return
			}
		}
	}
}

// Watch yields the entries after a span of the context's history, and then each entry that is added, once and in
// order, until ctx ends or the store is closed. The last error reports which. The zero ref is before the first entry.
// A caller that passes the span of the last entry it has read misses nothing.
//
// If the history no longer continues what was yielded, because the context was moved, or if it does not have the
// span, Watch ends with a *TipError: read the history up to its Actual again and watch from there. A move that is
// undone before the watcher sees it is not reported. If the context is deleted, Watch ends with ErrNotFound.
//
// A slow watcher delays only Close.
func (c *Context) Watch(ctx context.Context, after SpanRef) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		seen := after
		for {
			// Commits after this one end the wait below.
			head, err := c.store.engine.Head(ctx)
			if err != nil {
				yield(nil, err)
				return
			}
			tip, next, err := c.following(ctx, seen)
			if err != nil {
				yield(nil, err)
				return
			}
			if tip != seen {
				for e, err := range c.store.History(ctx, tip, Window{From: next}) {
					if !yield(e, err) || err != nil {
						return
					}
				}
				seen = tip
			}
			if _, err := c.store.engine.Wait(ctx, head); err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// following returns the tip of the context, which must be at seen or after it, and the position
// after seen.
func (c *Context) following(ctx context.Context, seen SpanRef) (tip SpanRef, next uint64, err error) {
	if ctx.Err() != nil {
		return SpanRef{}, 0, context.Cause(ctx)
	}
	if tip, err = c.Tip(ctx); err != nil || tip == seen {
		return tip, 0, err
	}
	runs := c.store.runs(ctx)
	on, err := structure.IsAncestor(seen, tip, runs)
	if isNotFound(err) || err == nil && !on { // a span that is gone is not on any history
		return SpanRef{}, 0, &TipError{Context: c.id, Expected: seen, Actual: tip}
	}
	if err != nil {
		return SpanRef{}, 0, err
	}
	at, err := structure.Position(seen, runs)
	return tip, at + 1, err
}

func (s *Store) changeOf(ctx context.Context, c *structure.Commit) (Change, error) {
	change := Change{Commit: Cursor{Number: c.Number, ID: c.ID}, Time: c.Time, Records: c.Records}
	moves := make(map[movedTo]*structure.Reflog)
	for _, r := range c.Records {
		if m, ok := r.(*structure.Reflog); ok {
			moves[movedTo{m.Context, m.To}] = m
		}
	}
	var added *addition
	for _, r := range c.Records {
		e, ok := eventOf(r, moves)
		if !ok {
			continue
		}
		if e.Kind == ContextExtended {
			if added == nil {
				added = s.addition(ctx, c)
			}
			var err error
			if e.From, err = added.before(e.Span); err != nil {
				return Change{}, err
			}
		}
		change.Events = append(change.Events, e)
	}
	return change, nil
}

// movedTo identifies a move by its result.
type movedTo struct {
	context ContextID
	span    SpanRef
}

// addition is what a commit adds to histories.
type addition struct {
	spans map[SpanRef]bool
	runs  map[structure.RunID]SpanRef // the spans they start after
	other structure.RunLookup
}

func (s *Store) addition(ctx context.Context, c *structure.Commit) *addition {
	a := &addition{spans: make(map[SpanRef]bool), runs: make(map[structure.RunID]SpanRef), other: s.runs(ctx)}
	for _, r := range c.Records {
		switch r := r.(type) {
		case *structure.Span:
			a.spans[r.Ref] = true
		case *structure.Run:
			a.runs[r.ID] = r.Parent
		}
	}
	return a
}

// before returns the last span of a history that the commit did not add.
func (a *addition) before(at SpanRef) (SpanRef, error) {
	for a.spans[at] {
		if at.Seq > 1 {
			at.Seq--
			continue
		}
		parent, ok := a.runs[at.Run]
		if !ok {
			run, err := a.other(at.Run)
			if isNotFound(err) {
				return SpanRef{}, nil // the run has been collected
			}
			if err != nil {
				return SpanRef{}, err
			}
			parent = run.Parent
		}
		at = parent
	}
	return at, nil
}

// eventOf returns the event for a record. Runs and spans have no event: the tips that follow them
// do. Moves are part of the event of their tip.
func eventOf(r structure.Record, moves map[movedTo]*structure.Reflog) (Event, bool) {
	switch r := r.(type) {
	case *structure.Block:
		return Event{Kind: ContentStored, Content: r.ID}, true
	case *structure.Thread:
		kind := ThreadUpdated
		if r.Active.IsZero() {
			kind = ThreadCreated
		}
		return Event{Kind: kind, Thread: r.ID, Context: r.Active}, true
	case *structure.Context:
		kind := ContextCreated
		if r.Tip != r.Base {
			kind = ContextUpdated
		}
		return Event{Kind: kind, Thread: r.Thread, Context: r.ID, Parent: r.Parent, Span: r.Tip, Set: r.Set}, true
	case *structure.Tip:
		if m := moves[movedTo{r.Context, r.Span}]; m != nil {
			return Event{Kind: ContextMoved, Context: r.Context, Span: r.Span, From: m.From, Name: m.Reason}, true
		}
		return Event{Kind: ContextExtended, Context: r.Context, Span: r.Span}, true
	case *structure.SpanSet:
		return Event{Kind: SpanSetOffered, Set: r.ID, Span: r.Parent}, true
	case *structure.Branch:
		return Event{Kind: BranchSet, Thread: r.Thread, Context: r.Context, Name: r.Name}, true
	case *structure.Checkpoint:
		return Event{Kind: CheckpointSet, Thread: r.Thread, Checkpoint: r.ID, Span: r.Span, Name: r.Name}, true
	case *structure.Summary:
		return Event{Kind: Summarized, Context: r.Context, Summary: r.ID, Content: r.Content, Span: r.To}, true
	case *structure.Value:
		e := Event{Kind: ValueSet, Thread: r.Owner.Thread, Context: r.Owner.Context, Owner: r.Owner, Name: r.Key, Content: r.Content}
		if r.Deleted() {
			e.Kind = ValueDeleted
		}
		return e, true
	case *structure.Deletion:
		return deletionEvent(r)
	}
	return Event{}, false
}

func deletionEvent(d *structure.Deletion) (Event, bool) {
	e := Event{Thread: d.Thread, Context: d.Context, Name: d.Name, Summary: d.Summary, Content: d.Content}
	switch d.Subject {
	case structure.KindThread:
		e.Kind = ThreadDeleted
	case structure.KindContext:
		e.Kind = ContextDeleted
	case structure.KindBranch:
		e.Kind = BranchDeleted
	case structure.KindCheckpoint:
		e.Kind = CheckpointDeleted
	case structure.KindSummary:
		e.Kind = SummaryDeleted
	case structure.KindBlock:
		e.Kind = ContentErased
	default:
		return Event{}, false
	}
	return e, true
}
