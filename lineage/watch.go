package lineage

import (
	"context"
	"iter"
	"time"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// EventKind tells what an event is about.
type EventKind string

// The kinds of event. ContextCreated is also told of a context that stands where it
// started when its overrides or metadata are set.
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

// Event is one thing that a commit did. Which fields are set follows from Kind.
//
// From is where a context stood that was moved. Of one that was extended, it is the last
// span of its history that was in the store before the commit: what follows it, up to
// Span, is what the commit added, which may be several spans. Where the context went on
// over what the store had already, as by choosing an alternative or by an import, From
// does not tell where it stood, and is Span itself if nothing was added. Context.Watch
// misses nothing in any case.
type Event struct {
	Kind       EventKind
	Thread     ThreadID
	Context    ContextID
	Parent     ContextID // of a context created
	Span       SpanRef   // where the context or checkpoint stands, the set is offered or the summary ends
	From       SpanRef   // what the context had before, see above
	Name       string    // of a branch or checkpoint; the reason of a move; the key of a value
	Owner      Owner     // what a value belongs to
	Content    ContentID
	Checkpoint structure.CheckpointID
	Summary    structure.SummaryID
	Set        structure.SpanSetID
}

// Cursor says up to which commit somebody has followed a store. The zero cursor is before the
// first. One of which only the number is known stands for whichever commit has that number.
type Cursor = backend.Cursor

// Change is a commit as a watcher sees it.
type Change struct {
	// Commit is where to continue watching behind it.
	Commit Cursor
	Time   time.Time
	Events []Event
	// Records are what the commit consists of. They must not be changed.
	Records []structure.Record
}

// Watch yields every commit behind a cursor, once and in order, and then waits for more,
// until the context ends or the store closes. A watcher that is slow delays nobody: it reads
// the journal at its own pace. Where the store lost commits that a cursor has seen, as power
// loss can take what was not durable, or is a copy that was continued elsewhere, the error
// is ErrDiverged.
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

// Changes yields the commits behind a cursor up to the last there is, as Watch does.
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

// Watch yields the entries that follow a span in the context's history, and then those
// that are added to it, in order and each once, until the context.Context ends or the
// store closes, which the last error tells. The zero ref is before the first entry. Who
// gives the span of the last entry that was read misses nothing that was added since.
//
// The history must go on from what was yielded. When it does not, because the context was
// moved back or elsewhere, or if it does not have the span, Watch ends with a
// *TipError: read the history up to its Actual anew and watch from there. A move
// that was undone before the watcher looked is not told. When the context is deleted,
// Watch ends with ErrNotFound.
//
// A watcher that is slow delays nobody but who closes the store.
func (c *Context) Watch(ctx context.Context, after SpanRef) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		seen := after
		for {
			// What is committed from here on ends the wait.
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

// following returns where the context stands, which must be at a span or further on, and
// the position after that span.
func (c *Context) following(ctx context.Context, seen SpanRef) (tip SpanRef, next uint64, err error) {
	if ctx.Err() != nil {
		return SpanRef{}, 0, context.Cause(ctx)
	}
	if tip, err = c.Tip(ctx); err != nil || tip == seen {
		return tip, 0, err
	}
	runs := c.store.runs(ctx)
	on, err := structure.IsAncestor(seen, tip, runs)
	if isNotFound(err) || err == nil && !on { // a span that is gone is on no history
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

// movedTo is what a move made of a tip.
type movedTo struct {
	context ContextID
	span    SpanRef
}

// addition is what a commit adds to histories.
type addition struct {
	spans map[SpanRef]bool
	runs  map[structure.RunID]SpanRef // what they start after
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
				return SpanRef{}, nil // it was collected since
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

// eventOf returns the event that a record stands for. Runs and spans show in the
// tips that follow them, and moves in the tips they explain.
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
