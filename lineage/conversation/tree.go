package conversation

import (
	"context"
	"slices"

	"github.com/lineage-store/lineage/lineage"
)

// Tree is a branch with the branches created from it.
type Tree struct {
	Branch
	// Children are the branches created from this one, oldest first.
	Children []*Tree
}

// Tree returns the main branch, then the other branches without a parent or with a deleted one, oldest first,
// each with the branches created from it.
func (c *Conversation) Tree(ctx context.Context) ([]*Tree, error) {
	all, err := c.list(ctx)
	if err != nil {
		return nil, err
	}
	nodes := make(map[lineage.ContextID]*Tree, len(all))
	for i := range all {
		nodes[all[i].state.ID] = &Tree{Branch: all[i].Branch}
	}
	var roots []*Tree
	for i := range all {
		node := nodes[all[i].state.ID]
		switch parent := nodes[all[i].parent]; {
		case parent != nil:
			parent.Children = append(parent.Children, node)
		case node.ID == Main:
			roots = slices.Insert(roots, 0, node)
		default:
			roots = append(roots, node)
		}
	}
	return roots, nil
}

// History returns a branch and its ancestors, oldest first. It begins after a deleted ancestor.
func (c *Conversation) History(ctx context.Context, id string) ([]Branch, error) {
	return read(ctx, c, func(r *snapshot) (history []Branch, err error) {
		b, err := r.find(ctx, id)
		for err == nil {
			history = append(history, b.Branch)
			if b.parent.IsZero() {
				slices.Reverse(history)
				return history, nil
			}
			b, err = r.find(ctx, b.ParentID)
		}
		return nil, err
	})
}
