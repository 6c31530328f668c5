package lineage

import (
	"context"
	"iter"
	"time"

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
)

// Event is one thing that a commit did. Which fields are set follows from Kind.
type Event struct {
	Kind       EventKind
	Thread     ThreadID
	Context    ContextID
	Parent     ContextID // of a context created
	Span       SpanRef   // where the context or checkpoint stands, or the span added
	From       SpanRef   // where a moved context stood
	Name       string    // of a branch or checkpoint; the reason of a move
	Content    ContentID
	Checkpoint structure.CheckpointID
	Summary    structure.SummaryID
	Set        structure.SpanSetID
}

// Change is a commit as a watcher sees it.
type Change struct {
	// Commit is its number. Watching from the next one goes on after it.
	Commit uint64
	Time   time.Time
	Events []Event
	// Records are what the commit consists of. They must not be changed.
	Records []structure.Record
}

// Watch yields every commit from the given number on, once and in order, and then
// waits for more, until the context ends or the store closes. A watcher that is
// slow delays nobody: it reads the journal at its own pace.
func (s *Store) Watch(ctx context.Context, from uint64) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		next := max(from, 1)
		for {
			for c, err := range s.engine.Feed(ctx, next) {
				if err != nil {
					yield(Change{}, err)
					return
				}
				next = c.Number + 1
				if !yield(changeOf(c), nil) {
					return
				}
			}
			if _, err := s.engine.Wait(ctx, next-1); err != nil {
				yield(Change{}, err)
				return
			}
		}
	}
}

// Changes yields the commits from the given number up to the last there is.
func (s *Store) Changes(ctx context.Context, from uint64) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		for c, err := range s.engine.Feed(ctx, from) {
			if err != nil {
				yield(Change{}, err)
				return
			}
			if !yield(changeOf(c), nil) {
				return
			}
		}
	}
}

func changeOf(c *structure.Commit) Change {
	change := Change{Commit: c.Number, Time: c.Time, Records: c.Records}
	moves := make(map[ContextID]*structure.Reflog)
	for _, r := range c.Records {
		if m, ok := r.(*structure.Reflog); ok {
			moves[m.Context] = m
		}
	}
	for _, r := range c.Records {
		if e, ok := eventOf(r, moves); ok {
			change.Events = append(change.Events, e)
		}
	}
	return change
}

// eventOf returns the event that a record stands for. Runs and spans show in the
// tips that follow them, and moves in the tips they explain.
func eventOf(r structure.Record, moves map[ContextID]*structure.Reflog) (Event, bool) {
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
		if m := moves[r.Context]; m != nil {
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
