package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
)

// events sends the changes of the store as they happen, as server-sent events. A message is a commit. Its data is an
// array of the records that 'lineage watch --json' prints, and its id is the position after the commit. A stream that
// breaks can be continued with the header Last-Event-ID, without missing or repeated events.
//
// Query parameters: from is the number of the first commit, by default the next one. thread limits the stream to some
// threads.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	after, filter, err := s.eventQuery(r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	ctx, end, ok := s.stream(r)
	if !ok {
		s.tooMany(w, r)
		return
	}
	defer end()
	w.Header().Set("Content-Type", "text/event-stream")
	if r.Method == http.MethodHead {
		return
	}
	o := &outlet{s: s, w: w, c: http.NewResponseController(w), after: after, filter: filter, next: time.Now().Add(s.o.Limits.Heartbeat)}
	// A browser that loses the connection before the first event continues here.
	err = o.send(fmt.Sprintf("retry: 1000\nid: %s\n\n", eventID(after)))
	for {
		if err == nil {
			err = o.changes(ctx)
		}
		if err == nil {
			err = o.wait(ctx)
		}
		switch {
		case err == nil:
		case errors.Is(err, errTooSlow):
			s.metrics.add(&s.metrics.dropped)
			return
		case ctx.Err() != nil:
			return
		case errors.Is(err, lineage.ErrDiverged):
			// The store lost commits, or a copy collected garbage, so the position has no meaning any more.
			_ = o.send("event: diverged\ndata: {}\n\n") // the stream ends either way
			return
		case errors.Is(err, lineage.ErrClosed), errors.Is(err, lineage.ErrExpired), errors.Is(err, errEnded):
			return
		default:
			s.o.Logger.Error("stream of events failed", "err", err)
			return
		}
	}
}

var (
	errTooSlow = errors.New("the reader is too slow or has gone")
	errEnded   = errors.New("the credentials have ended")
)

// maxThreads limits the threads of a stream.
const maxThreads = 100

// eventQuery reads the start of a stream and its filter. If the position is not in the store, the error is
// ErrDiverged.
func (s *Server) eventQuery(r *http.Request) (after lineage.Cursor, f *eventFilter, err error) {
	ctx, query := r.Context(), r.URL.Query()
	f = &eventFilter{store: s.o.Store, caller: callerOf(r), threads: make(map[lineage.ThreadID]bool), homes: make(map[lineage.ContextID]lineage.ThreadID)}
	for _, text := range query["thread"] {
		var id lineage.ThreadID
		if err := id.UnmarshalText([]byte(text)); err != nil || len(f.threads) == maxThreads {
			return after, nil, fmt.Errorf("thread %q: %w", text, lineage.ErrInvalid)
		}
		f.threads[id] = true
	}
	head, err := s.o.Store.View().Head(ctx)
	if err != nil {
		return after, nil, err
	}
	switch last, from := r.Header.Get("Last-Event-ID"), query.Get("from"); {
	case last != "":
		if after, err = parseEventID(last); err != nil {
			return after, nil, err
		}
	case from != "":
		n, err := strconv.ParseUint(from, 10, 63)
		if err != nil || n == 0 {
			return after, nil, fmt.Errorf("from %q: %w: must be the number of a commit", from, lineage.ErrInvalid)
		}
		after.Number = n - 1
	default:
		return head, f, nil
	}
	if after.Number > head.Number {
		return after, nil, fmt.Errorf("commit %d: %w", after.Number, lineage.ErrDiverged)
	}
	return after, f, s.has(ctx, after)
}

// has returns ErrDiverged if the store does not have a commit.
func (s *Server) has(ctx context.Context, at lineage.Cursor) error {
	for _, err := range s.o.Store.View().Feed(ctx, at) {
		return err
	}
	return nil
}

// eventID returns a position as text. The number alone would match a commit of another history.
func eventID(at lineage.Cursor) string { return fmt.Sprintf("%d-%016x", at.Number, at.ID) }

func parseEventID(text string) (at lineage.Cursor, err error) {
	number, id, ok := strings.Cut(text, "-")
	if ok && len(id) == 16 {
		if at.Number, err = strconv.ParseUint(number, 10, 63); err == nil {
			at.ID, err = strconv.ParseUint(id, 16, 64)
		}
	}
	if !ok || len(id) != 16 || err != nil {
		return lineage.Cursor{}, fmt.Errorf("event id %.40q: %w", text, lineage.ErrInvalid)
	}
	return at, nil
}

// outlet is a stream of events.
type outlet struct {
	s         *Server
	w         http.ResponseWriter
	c         *http.ResponseController
	after     lineage.Cursor // the last position sent
	announced lineage.Cursor // the last position that the reader knows
	next      time.Time      // when the next heartbeat is due
	filter    *eventFilter
	buffer    bytes.Buffer
}

// changes sends the commits after the position, up to the last one.
func (o *outlet) changes(ctx context.Context) error {
	to, end, err := o.filter.begin(ctx, o.after, o.beat)
	if err != nil {
		return err
	}
	defer end()
	for change, err := range o.s.o.Store.Changes(ctx, o.after) {
		if err != nil {
			return err
		}
		if change.Commit.Number > to {
			break
		}
		if err := o.change(ctx, &change); err != nil {
			return err
		}
	}
	return nil
}

func (o *outlet) change(ctx context.Context, change *lineage.Change) error {
	if err := o.beat(); err != nil {
		return err
	}
	o.buffer.Reset()
	for i := range change.Events {
		e := &change.Events[i]
		sent, err := o.filter.sends(ctx, change, e)
		o.filter.passed(e)
		if err != nil || !sent {
			if err != nil {
				return err
			}
			continue
		}
		line, err := records.Encode(records.NewEvent(change, e))
		if err != nil {
			return err
		}
		start := ","
		if o.buffer.Len() == 0 {
			start = "id: " + eventID(change.Commit) + "\ndata: ["
		}
		o.buffer.WriteString(start)
		o.buffer.Write(bytes.TrimSuffix(line, []byte("\n")))
	}
	o.after = change.Commit
	if o.buffer.Len() == 0 {
		return nil
	}
	o.buffer.WriteString("]\n\n")
	o.s.metrics.add(&o.s.metrics.events)
	o.announced = change.Commit
	return o.send(o.buffer.String())
}

// wait returns when there is a new commit.
func (o *outlet) wait(ctx context.Context) error {
	for {
		pause, cancel := context.WithDeadline(ctx, o.next)
		_, err := o.s.o.Store.View().Wait(pause, o.after)
		// The process that has the store open may notice the end of the pause before this one does.
		quiet := ctx.Err() == nil && (pause.Err() != nil || errors.Is(err, context.DeadlineExceeded))
		cancel()
		if err == nil || !quiet {
			return err
		}
		if err := o.beat(); err != nil {
			return err
		}
	}
}

// beat does what is due: it ends a stream whose caller may not read any more, or sends a heartbeat. The heartbeat has
// the position if commits were left out.
func (o *outlet) beat() error {
	now := time.Now()
	if now.Before(o.next) {
		return nil
	}
	o.next = now.Add(o.s.o.Limits.Heartbeat)
	if !o.filter.caller.valid(o.s.o.now()) {
		return errEnded
	}
	beat := ":\n\n"
	if o.announced != o.after {
		beat, o.announced = "id: "+eventID(o.after)+"\n\n", o.after
	}
	return o.send(beat)
}

// send sends a part of the stream immediately.
func (o *outlet) send(text string) error {
	_, err := o.w.Write([]byte(text))
	if err == nil {
		err = o.c.Flush()
	}
	if err != nil {
		return errTooSlow
	}
	return nil
}
