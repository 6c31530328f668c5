package resume

import (
	"context"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/message"
)

// callsBack is the number of messages before the rest of a history that are searched for the calls of its results.
const callsBack = 256

// rest reads the part of the history after the agent's own lines. If a call among these has its result in the rest,
// the own lines end before the call.
func (h *history) rest(ctx context.Context, s *Session) (*excerpt, error) {
	for {
		upTo, losses := 0, len(s.Losses)
		if s.own != nil {
			upTo = s.own.upTo
		}
		rest, err := h.read(ctx, upTo, len(h.spans), s.lose)
		if err != nil || s.own == nil {
			return rest, err
		}
		call, found, err := h.callOf(ctx, openResults(rest.messages), upTo)
		if err != nil {
			return nil, err
		}
		if !found {
			return rest, nil
		}
		if !s.own.cut(call) {
			s.own = nil
		}
		s.Losses = s.Losses[:losses]
	}
}

// callOf returns the index of the first span with one of the calls, of those shortly before an index.
func (h *history) callOf(ctx context.Context, calls map[string]bool, before int) (span int, found bool, err error) {
	if len(calls) == 0 {
		return 0, false, nil
	}
	earlier, err := h.read(ctx, max(0, before-callsBack), before, func(lineage.Loss) {})
	if err != nil {
		return 0, false, err
	}
	for i, m := range earlier.messages {
		for j := range m.Parts {
			if c := &m.Parts[j]; c.Kind == message.CallKind && calls[c.CallID] {
				return earlier.from[i], true, nil
			}
		}
	}
	return 0, false, nil
}

// openResults returns the ids of results whose calls are not among the messages before them.
func openResults(messages []message.Message) map[string]bool {
	open, called := make(map[string]bool), make(map[string]bool)
	for _, m := range messages {
		for i := range m.Parts {
			switch p := &m.Parts[i]; {
			case p.CallID == "":
			case p.Kind == message.CallKind:
				called[p.CallID] = true
			case p.Kind == message.ResultKind && !called[p.CallID]:
				open[p.CallID] = true
			}
		}
	}
	return open
}
