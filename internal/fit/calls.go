package fit

import (
	"context"

	"github.com/lineage-store/lineage/lineage/message"
)

// Use is a call of a tool or the result of one. ID is the same for a call and its result, or empty.
type Use struct {
	ID     string
	Result bool
}

// Uses returns the calls and results in messages.
func Uses(said []message.Message) (uses []Use) {
	for i := range said {
		for k := range said[i].Parts {
			switch p := &said[i].Parts[k]; p.Kind {
			case message.CallKind:
				uses = append(uses, Use{ID: p.CallID})
			case message.ResultKind:
				uses = append(uses, Use{ID: p.CallID, Result: true})
			}
		}
	}
	return uses
}

// Calls finds which positions of a history are sent together because of calls and results: no position
// between a call and its result is sent without the one before it. A result belongs to the nearest call
// of its id before it. One without an id belongs to the position before it if no call without an id is found.
type Calls struct {
	// Length is the length of the history.
	Length uint64
	// Uses returns the calls and results at a position, in order. It is asked for the same ones again.
	Uses func(ctx context.Context, position uint64) ([]Use, error)

	first []uint64 // by distance from the end: the first position that those from there on belong to
}

// mostBetween is how many positions before a result its call is looked for.
const mostBetween = 256

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

// belongs returns the first position with a call of which the result is at a position.
func (c *Calls) belongs(ctx context.Context, position uint64) (first uint64, err error) {
	uses, err := c.Uses(ctx, position)
	if err != nil {
		return 0, err
	}
	first = position
	awaited := make(map[string]bool)
	for i := len(uses) - 1; i >= 0; i-- {
		settle(awaited, uses[i])
	}
	for at := position - 1; at > 0 && position-at <= mostBetween && len(awaited) > 0; at-- {
		before, err := c.Uses(ctx, at)
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

// settle notes the result, or the call, that stands before those that were noted.
func settle(awaited map[string]bool, u Use) {
	if u.Result {
		awaited[u.ID] = true
	} else {
		delete(awaited, u.ID)
	}
}
