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
	if err != nil || t == nil {
		return g, err
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

// node is a node, what orders it among those of the same time, and what its ids follow
// from.
type node struct {
	GraphNode
	commit, position uint64
	at, after        structure.SpanRef
	source           string // where the span is at home
	version          uint64
}

// nodes returns every message of a chat: those of the same time in the order they
// were added.
func (s *state) nodes(ctx context.Context, t *structure.Thread) ([]GraphNode, error) {
	reach, err := backend.ReachOf(ctx, s.from, t)
	if err != nil {
		return nil, err
	}
	r := s.reading(t)
	var all []node
	for _, part := range reach.Extents() {
		if all, err = r.nodesOf(ctx, part, all); err != nil {
			return nil, err
		}
	}
	latest := make(map[string]uint64)
	for i := range all {
		latest[all[i].source] = max(latest[all[i].source], all[i].version)
	}
	ids := make(map[structure.SpanRef]string, len(all))
	for i := range all {
		n := &all[i]
		if n.ID = n.source; n.source == "" || n.version < latest[n.source] {
			n.ID = foreignID(t.ID, n.at)
		}
		ids[n.at] = n.ID
	}
	slices.SortFunc(all, func(a, b node) int {
		return cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), cmp.Compare(a.commit, b.commit), cmp.Compare(a.position, b.position))
	})
	nodes := make([]GraphNode, len(all))
	for i := range all {
		all[i].ParentID = Ref(ids[all[i].after])
		nodes[i] = all[i].GraphNode
	}
	return nodes, nil
}

// nodesOf appends what a chat sees of one run, without the ids.
func (r *ThreadReader) nodesOf(ctx context.Context, part backend.Extent, nodes []node) ([]node, error) {
	home := part.Run.Home == r.thread.Home()
	after := part.Run.Parent
	last := structure.SpanRef{Run: part.Run.ID, Seq: part.Last}
	for step, err := range r.from.Path(ctx, last, structure.Window{From: part.Run.Position(1)}, backend.PathOptions{Bodies: true}) {
		if err != nil {
			return nil, err
		}
		m := Message{Name: roleOf(step), CreatedAt: step.Span.Usages[0].CreatedAt.UnixMilli()}
		if m.Data, err = r.data(ctx, step, ""); err != nil {
			return nil, err
		}
		n := node{GraphNode: m.Node(), commit: step.Commit, position: step.Position, at: step.Span.Ref, after: after}
		if u := sourced(step.Span.Usages); home && u != nil {
			n.source, n.version = u.SourceID, u.Lookup
		}
		nodes, after = append(nodes, n), step.Span.Ref
	}
	return nodes, nil
}
