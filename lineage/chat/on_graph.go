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
	thread, err := s.thread(ctx, chatID)
	if err != nil || thread == nil {
		return g, err
	}
	if g.Nodes, err = s.nodes(ctx, thread.ID()); err != nil {
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

// node is a node with what orders it among those of the same time.
type node struct {
	GraphNode
	commit, position uint64
}

// nodes returns every message of a chat: those of the same time in the order they
// were added.
func (s *onStore) nodes(ctx context.Context, thread structure.ThreadID) ([]GraphNode, error) {
	nodes := []GraphNode{}
	graph, err := s.reach(ctx, thread)
	if err != nil {
		return nil, err
	}
	r, err := s.reading(ctx, thread)
	if isNotFound(err) {
		return nodes, nil
	}
	if err != nil {
		return nil, err
	}
	var ordered []node
	for _, part := range graph {
		if ordered, err = r.strandNodes(ctx, part, ordered); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(ordered, func(a, b node) int {
		return cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), cmp.Compare(a.commit, b.commit), cmp.Compare(a.position, b.position))
	})
	for i := range ordered {
		nodes = append(nodes, ordered[i].GraphNode)
	}
	return nodes, nil
}

// strandNodes appends what a chat sees of one run.
func (r *reading) strandNodes(ctx context.Context, part *reached, nodes []node) ([]node, error) {
	parent, err := r.idAt(ctx, part.run.Parent)
	if err != nil {
		return nil, err
	}
	last := structure.SpanRef{Run: part.run.ID, Seq: part.last}
	for step, err := range r.from.Path(ctx, last, structure.Window{From: part.run.Depth + 1}, backend.PathOptions{Bodies: true}) {
		if err != nil {
			return nil, err
		}
		m, err := r.message(ctx, step, parent)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, node{GraphNode: m.Node(), commit: step.Commit, position: step.Position})
		parent = Ref(m.ID)
	}
	return nodes, nil
}
