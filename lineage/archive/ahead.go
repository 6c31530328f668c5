package archive

import "context"

// Ahead reads an archive in its own goroutine, ahead of the caller.
type Ahead struct {
	cancel context.CancelCauseFunc
	budget *budget
	events chan ahead
	size   int64 // of the conversation returned last
	err    error
}

// ahead is an event with the size of its conversation, 0 for other events.
type ahead struct {
	Event
	size int64
}

// readAhead limits the bytes of conversations that were read and not yet returned.
const readAhead = 32 << 20

// ReadAhead starts reading an archive. The caller must call Stop.
func ReadAhead(ctx context.Context, src Source, o ReadOptions) (*Ahead, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	r, err := newReading(ctx, o)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	a := &Ahead{cancel: cancel, budget: newBudget(readAhead), events: make(chan ahead, 256)}
	r.take = func(e Event) error {
		next := ahead{Event: e}
		if e.Conversation != nil {
			next.size = e.Conversation.Size()
			a.budget.take(next.size)
		}
		select {
		case a.events <- next:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	go func() {
		defer close(a.events)
		a.err = r.run(src)
	}()
	return a, nil
}

// Next returns the next event, false at the end. The caller gives up the conversation of the previous event, whose
// memory is counted until then.
func (a *Ahead) Next() (Event, bool) {
	a.budget.give(a.size)
	next, ok := <-a.events
	a.size = next.size
	return next.Event, ok
}

// Err returns the error that ended reading. It may be called after Next has returned false.
func (a *Ahead) Err() error { return a.err }

// Stop ends reading and waits for the goroutine. The context of the reader is cancelled with the cause.
func (a *Ahead) Stop(cause error) {
	a.cancel(cause)
	a.budget.close()
	for range a.events {
	}
}
