package chat

import (
	"cmp"
	"context"
	"slices"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Graph implements Store.
func (s *onStore) Graph(ctx context.Context, chatID string) (Graph, error) {
	g := Graph{ChatID: chatID, Nodes: []GraphNode{}, Branches: []GraphBranch{}, Checkpoints: []GraphCheckpoint{}}
	t, err := s.thread(ctx, chatID)
	if err != nil {
		return g, ignoreNotFound(err)
	}
	if g.Nodes, err = s.nodes(ctx, t); err != nil {
		return Graph{}, err
	}
	branches, err := s.ListBranches(ctx, chatID)
	if err != nil {
		return Graph{}, err
	}
	for _, b := range branches {
		g.Branches = append(g.Branches, GraphBranch{Name: b.Name, HeadMessageID: b.HeadMessageID, IsActive: b.IsActive})
	}
	checkpoints, err := s.ListCheckpoints(ctx, chatID)
	if err != nil {
		return Graph{}, err
	}
	for _, c := range slices.Backward(checkpoints) {
		g.Checkpoints = append(g.Checkpoints, GraphCheckpoint{Name: c.Name, MessageID: c.MessageID})
	}
	return g, nil
}

// nodes returns all messages of a chat by time, and those with equal times in the order in which they were added.
func (s *state) nodes(ctx context.Context, t *structure.Thread) ([]GraphNode, error) {
	type node struct {
		GraphNode
		commit, position uint64
	}
	reach, err := backend.ReachOf(ctx, s.from, t)
	if err != nil {
		return nil, err
	}
	r, total := s.reading(t), uint64(0)
	for _, part := range reach.Extents() {
		total += part.Last
	}
	if err := r.findLaterVersions(ctx, total); err != nil {
		return nil, err
	}
	var all []node
	ids := make(map[structure.SpanRef]Ref) // parents come before their children
	for _, part := range reach.Extents() {
		after, last := part.Run.Parent, structure.SpanRef{Run: part.Run.ID, Seq: part.Last}
		for step, err := range s.from.Path(ctx, last, structure.Window{From: part.Run.Position(1)}, backend.PathOptions{Bodies: true}) {
			if err != nil {
				return nil, err
			}
			m, err := r.Message(ctx, step, ids[after])
			if err != nil {
				return nil, err
			}
			after = step.Span.Ref
			all, ids[after] = append(all, node{m.Node(), step.Commit, step.Position}), Ref(m.ID)
		}
	}
	slices.SortFunc(all, func(a, b node) int {
		return cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), cmp.Compare(a.commit, b.commit), cmp.Compare(a.position, b.position))
	})
	nodes := make([]GraphNode, len(all))
	for i := range all {
		nodes[i] = all[i].GraphNode
	}
	return nodes, nil
}
