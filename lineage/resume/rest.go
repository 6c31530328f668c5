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
		upTo := 0
		if s.own != nil {
			upTo = s.own.upTo
		}
		losses := len(s.Losses)
		p, err := h.read(ctx, upTo, len(h.spans), s.lose)
		if err != nil || s.own == nil || len(p.messages) == 0 {
			return p, err
		}
		open := openResults(p.messages)
		if len(open) == 0 {
			return p, nil
		}
		before, err := h.read(ctx, max(0, upTo-callsBack), upTo, func(lineage.Loss) {})
		if err != nil {
			return nil, err
		}
		first := -1
		for i, m := range before.messages {
			for j := range m.Parts {
				if c := &m.Parts[j]; c.Kind == message.CallKind && open[c.CallID] && first < 0 {
					first = before.from[i]
				}
			}
		}
		if first < 0 {
			return p, nil
		}
		if !s.own.cut(first) {
			s.own = nil
		}
		s.Losses = s.Losses[:losses]
	}
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
