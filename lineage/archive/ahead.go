package archive

import "context"

// Ahead reads an archive ahead of its caller, who works on what was read before.
type Ahead struct {
	cancel context.CancelCauseFunc
	budget *budget
	events chan ahead
	size   int64 // of the conversation that the caller has
	err    error
}

// ahead is an event with the size of its conversation.
type ahead struct {
	Event
	size int64
}

// readAhead limits the bytes of conversations that wait for the caller.
const readAhead = 32 << 20

// ReadAhead begins to read an archive. Stop must be called.
func ReadAhead(ctx context.Context, src Source, o ReadOptions) (*Ahead, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	r, err := newReading(ctx, o)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	a := &Ahead{cancel: cancel, budget: newBudget(readAhead), events: make(chan ahead, 256)}
	r.take = func(e Event) error {
		is := ahead{Event: e}
		if e.Conversation != nil {
			is.size = e.Conversation.Size()
			a.budget.take(is.size)
		}
		select {
		case a.events <- is:
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

// Next returns the next event, false at the end. The caller no longer holds the conversation of the event before.
func (a *Ahead) Next() (Event, bool) {
	a.budget.give(a.size)
	is, ok := <-a.events
	a.size = is.size
	return is.Event, ok
}

// Err returns the error that ended reading, after Next has returned false.
func (a *Ahead) Err() error { return a.err }

// Stop ends reading and waits for it. The context of what is read ends with the cause.
func (a *Ahead) Stop(cause error) {
	a.cancel(cause)
	a.budget.close()
	for range a.events {
	}
}
