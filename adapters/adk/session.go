package adk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"google.golang.org/adk/v2/session"

	"github.com/lineage-store/lineage/lineage"
)

// stored is a session as it was read: one of ADK's service in memory, which adds what is appended to
// it since.
type stored struct {
	session.Session
	memory  session.Service
	updated time.Time
}

// read returns a session with the state at a span, or the state now if it is zero, and some of its events.
func (s service) read(ctx context.Context, k key, thread *lineage.Thread, branch *lineage.Context, at lineage.SpanRef, events []*session.Event) (*stored, error) {
	info, err := thread.Info(ctx)
	if err != nil {
		return nil, err
	}
	state := make(map[string]any)
	for prefix, owner := range k.owners(branch) {
		values := s.store.Values(owner)
		if prefix == "" && !at.IsZero() {
			values = values.At(at)
		}
		for v, err := range values.All(ctx, "") {
			var value any
			if err == nil {
				err = json.Unmarshal(v.JSON, &value)
			}
			if err != nil {
				return nil, fmt.Errorf("session %q: state %q: %w", k.id, v.Key, err)
			}
			state[v.Key] = value
		}
	}
	read := &stored{memory: session.InMemoryService(), updated: info.UpdatedAt}
	made, err := read.memory.Create(ctx, &session.CreateRequest{AppName: k.app, UserID: k.userID, SessionID: k.id, State: state})
	if err != nil {
		return nil, err
	}
	read.Session = made.Session
	for _, e := range events {
		delta := e.Actions.StateDelta
		e.Actions.StateDelta = nil // what it led to is in the state, or was replaced
		err = errors.Join(err, read.memory.AppendEvent(ctx, read.Session, e))
		e.Actions.StateDelta = delta
	}
	return read, err
}

// LastUpdateTime implements session.Session.
func (s *stored) LastUpdateTime() time.Time {
	if s.Events().Len() == 0 {
		return s.updated
	}
	return s.Session.LastUpdateTime()
}
