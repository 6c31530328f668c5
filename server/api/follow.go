package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/structure"
)

type followQuery struct {
	of
	After  string `json:"-" query:"after" doc:"the id of the message after which it begins, or empty for the whole history; default the tip"`
	LastID string `json:"-" header:"Last-Event-ID" doc:"the id of the last event, in place of after"`
}

// follow sends the messages of a history as they are added, as server-sent events. An event is a step of the history.
// Its data is an array of the records of messages, and its id is the address of the step. A stream that breaks can be
// continued with the header Last-Event-ID, without missing or repeated messages. If the context is moved, the event
// moved has the new tip, and the messages after that follow.
func (a *API) follow(ctx context.Context, c *call, in *followQuery) error {
	found, err := c.context(ctx, in.of)
	if err != nil {
		return err
	}
	after, err := in.start(found)
	if err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", "text/event-stream")
	if c.r.Method == http.MethodHead {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &stream{c: c, found: found, cancel: cancel, out: http.NewResponseController(c.w)}
	beats := make(chan struct{})
	defer func() { // after this function nothing may write to the answer
		cancel()
		<-beats
	}()
	go func() {
		defer close(beats)
		s.beat(ctx, a.o.Heartbeat, a.o.now)
	}()
	s.write(fmt.Sprintf("retry: 1000\nid: %s\n\n", tipText(after)))
	for {
		err := s.messages(ctx, after)
		var tip *lineage.TipError
		moved := errors.As(err, &tip)
		if moved {
			err = s.check(ctx)
		}
		switch {
		case moved && err == nil:
			after = tip.Actual
			s.write(fmt.Sprintf("event: moved\nid: %s\ndata: {\"tip\":%q}\n\n", tipText(after), tipText(after)))
		case errors.Is(err, lineage.ErrNotFound):
			s.write("event: deleted\ndata: {}\n\n")
			return nil
		default:
			if ctx.Err() == nil && !errors.Is(err, lineage.ErrClosed) && !errors.Is(err, lineage.ErrExpired) {
				a.o.Logger.LogAttrs(ctx, levelError, "stream failed", attr("err", err.Error()))
			}
			return nil
		}
	}
}

// start returns the span after which a stream begins.
func (q *followQuery) start(found *refs.Ref) (after lineage.SpanRef, err error) {
	text := q.LastID
	if text == "" {
		text = q.After
	}
	switch text {
	case "":
		return found.Span, nil
	case emptyTip:
		return after, nil
	}
	if after, err = structure.ParseSpanRef(text); err != nil {
		err = fmt.Errorf("after %.100q: %w: must be the id of a message, or %s", text, lineage.ErrInvalid, emptyTip)
	}
	return after, err
}

// tipText returns a tip in the form of headers and events.
func tipText(tip lineage.SpanRef) string {
	if tip.IsZero() {
		return emptyTip
	}
	return tip.String()
}

// stream is a stream of messages.
type stream struct {
	c      *call
	found  *refs.Ref
	cancel context.CancelFunc

	mu  sync.Mutex
	out *http.ResponseController
}

// write sends a part of the stream immediately. If the reader is gone, it ends the stream.
func (s *stream) write(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.c.w.Write([]byte(text))
	if err == nil {
		err = s.out.Flush()
	}
	if err != nil {
		s.cancel()
	}
}

// beat sends heartbeats, and ends the stream when the credentials of the caller end.
func (s *stream) beat(ctx context.Context, pause time.Duration, now func() time.Time) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !s.c.caller.Valid(now()) {
			s.cancel()
			return
		}
		s.write(":\n\n")
	}
}

// check returns ErrNotFound if the context is gone or the caller may not read its thread any more. There may be another context
// with the same id, in another thread.
func (s *stream) check(ctx context.Context) error {
	if s.found.Thread == nil {
		return nil
	}
	c, err := s.c.store.View().Context(ctx, s.found.Context.ID())
	if err == nil && c.Thread != s.found.Thread.ID() {
		err = notFound("context", s.found.Text)
	}
	if err != nil {
		return err
	}
	return s.c.caller.Scope.Check(ctx, s.found.Thread)
}

// messages sends the messages after a span until an error occurs.
func (s *stream) messages(ctx context.Context, after lineage.SpanRef) error {
	for e, err := range s.found.Context.Watch(ctx, after) {
		if err != nil {
			return err
		}
		if e.Span == after {
			continue // sent with the first entry of its step
		}
		if err := s.check(ctx); err != nil {
			return err
		}
		var b bytes.Buffer
		fmt.Fprintf(&b, "event: messages\nid: %s\ndata: [", e.Span)
		for i, err := range s.step(ctx, e.Span) {
			if err != nil {
				return err
			}
			m, err := records.OfMessage(ctx, s.c.store, i, records.MaxText)
			if err == nil && m.ID != e.Span.String() {
				b.WriteByte(',')
			}
			if err == nil {
				err = encode(&b, m)
			}
			if err != nil {
				return err
			}
		}
		b.WriteString("]\n\n")
		s.write(b.String())
		after = e.Span
	}
	return ctx.Err()
}

// step yields the entries of a span.
func (s *stream) step(ctx context.Context, at lineage.SpanRef) func(yield func(*lineage.Entry, error) bool) {
	return s.c.store.History(ctx, at, lineage.Window{Last: 1})
}
