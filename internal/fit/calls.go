package fit

import (
	"context"

	"github.com/lineage-store/lineage/lineage/message"
)

// ToolPart is a call of a tool or the result of one. A call and its result have the same ID, or none.
type ToolPart struct {
	ID     string
	Result bool
}

// ToolParts returns the calls and results in messages.
func ToolParts(messages []message.Message) (parts []ToolPart) {
	for i := range messages {
		for k := range messages[i].Parts {
			switch p := &messages[i].Parts[k]; p.Kind {
			case message.CallKind:
				parts = append(parts, ToolPart{ID: p.CallID})
			case message.ResultKind:
				parts = append(parts, ToolPart{ID: p.CallID, Result: true})
			}
		}
	}
	return parts
}

// Calls determines which positions of a history are sent together because of calls and results: no
// position after a call, up to that of its result, is sent without the one before it. A result
// belongs to the nearest preceding call with its id. A result without an id belongs to the nearest
// call without an id or, if none is found, to the previous position.
type Calls struct {
	// Length is the length of the history.
	Length uint64
	// ToolParts returns the calls and results at a position, in order. It is called repeatedly for the
	// same position.
	ToolParts func(ctx context.Context, position uint64) ([]ToolPart, error)

	first []uint64 // by distance from the end: the first position that this and later positions belong to
}

// maxBetween is the maximum distance between a result and its call.
const maxBetween = 256

// Together implements History.
func (c *Calls) Together(ctx context.Context, position uint64) (bool, error) {
	for next := c.Length - uint64(len(c.first)); next >= position; next-- {
		first, err := c.belongs(ctx, next)
		if err != nil {
			return false, err
		}
		if n := len(c.first); n > 0 {
			first = min(first, c.first[n-1])
		}
		c.first = append(c.first, first)
	}
	return c.first[c.Length-position] < position, nil
}

// belongs returns the first position with a call whose result is at the given position.
func (c *Calls) belongs(ctx context.Context, position uint64) (first uint64, err error) {
	parts, err := c.ToolParts(ctx, position)
	if err != nil {
		return 0, err
	}
	first = position
	awaited := make(map[string]bool)
	for i := len(parts) - 1; i >= 0; i-- {
		settle(awaited, parts[i])
	}
	for at := position - 1; at > 0 && position-at <= maxBetween && len(awaited) > 0; at-- {
		before, err := c.ToolParts(ctx, at)
		if err != nil {
			return 0, err
		}
		for _, u := range before {
			if !u.Result && awaited[u.ID] {
				delete(awaited, u.ID)
				first = at
			}
		}
	}
	if awaited[""] && position > 1 {
		first = min(first, position-1)
	}
	return first, nil
}

// settle adds a result to the awaited ones, or removes that of a call. Parts are passed in reverse
// order.
func settle(awaited map[string]bool, u ToolPart) {
	if u.Result {
		awaited[u.ID] = true
	} else {
		delete(awaited, u.ID)
	}
}
