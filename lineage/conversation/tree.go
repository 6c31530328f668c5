package conversation

import (
	"context"
	"slices"

	"github.com/lineage-store/lineage/lineage"
)

// Tree is a branch with those that were made from it.
type Tree struct {
	Branch
	// Children are the branches made from this one, oldest first.
	Children []*Tree
}

// Tree returns the main branch, and after it every other branch that has no parent, or
// whose parent was deleted, oldest first; each with those made from it.
func (c *Conversation) Tree(ctx context.Context) ([]*Tree, error) {
	all, err := c.list(ctx)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, oldestFirst)
	nodes := make([]*Tree, len(all))
	byContext := make(map[lineage.ContextID]*Tree, len(all))
	for i, b := range all {
		nodes[i] = &Tree{Branch: b.Branch}
		byContext[b.context] = nodes[i]
	}
	var roots []*Tree
	for i, b := range all {
		if b.parent.IsZero() {
			roots = append(roots, nodes[i])
			continue
		}
		parent := byContext[b.parent]
		parent.Children = append(parent.Children, nodes[i])
	}
	return roots, nil
}

// History returns the ancestry of a branch, from the main branch down to itself. Where
// an ancestor was deleted, it begins after that one.
func (c *Conversation) History(ctx context.Context, id string) ([]Branch, error) {
	return read(ctx, c, func(r *reading) (history []Branch, err error) {
		for at := id; at != ""; {
			b, err := r.find(ctx, at)
			if err != nil {
				return nil, err
			}
			history = append(history, b.Branch)
			if at = ""; !b.parent.IsZero() {
				at = b.ParentID
			}
		}
		slices.Reverse(history)
		return history, nil
	})
}
