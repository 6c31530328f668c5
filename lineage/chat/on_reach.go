package chat

import (
	"context"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// reach is the part of the store's history that is a chat's: of each run that one
// of its contexts or checkpoints can see, how far it sees.
type reach map[structure.RunID]*reached

type reached struct {
	run  structure.RunInfo
	last uint64
}

// reach returns what a thread's contexts and checkpoints see. It looks at each of
// them and each run once, and at no message.
func (s *onStore) reach(ctx context.Context, thread structure.ThreadID) (reach, error) {
	return reachOf(ctx, s.engine, thread)
}

func reachOf(ctx context.Context, from backend.Reader, thread structure.ThreadID) (reach, error) {
	graph := make(reach)
	for c, err := range from.Contexts(ctx, thread, structure.ContextID{}) {
		if err != nil {
			return nil, err
		}
		if err := graph.follow(ctx, from, c.Tip); err != nil {
			return nil, err
		}
	}
	for c, err := range from.Checkpoints(ctx, thread, "") {
		if err != nil {
			return nil, err
		}
		if err := graph.follow(ctx, from, c.Span); err != nil {
			return nil, err
		}
	}
	return graph, nil
}

// follow adds the history that ends at a span, as far as it is not there yet.
func (g reach) follow(ctx context.Context, from backend.Reader, at structure.SpanRef) error {
	runs := backend.Runs(ctx, from)
	for !at.IsZero() {
		if known := g[at.Run]; known != nil {
			known.last = max(known.last, at.Seq)
			return nil
		}
		run, err := runs(at.Run)
		if err != nil {
			return err
		}
		g[at.Run] = &reached{run: run, last: at.Seq}
		at = run.Parent
	}
	return nil
}

func (g reach) size() int {
	n := uint64(0)
	for _, r := range g {
		n += r.last
	}
	return int(n)
}

// continues reports whether anything follows a span.
func (g reach) continues(at structure.SpanRef) bool {
	if r := g[at.Run]; r != nil && r.last > at.Seq {
		return true
	}
	for _, r := range g {
		if r.run.Parent == at {
			return true
		}
	}
	return false
}
