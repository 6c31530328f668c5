package conversation

import (
	"context"
	"slices"
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
	nodes := make(map[*branch]*Tree, len(all))
	for _, b := range all {
		nodes[b] = &Tree{Branch: b.Branch}
	}
	var roots []*Tree
	for _, b := range all {
		if b.parent == nil {
			roots = append(roots, nodes[b])
			continue
		}
		parent := nodes[b.parent]
		parent.Children = append(parent.Children, nodes[b])
	}
	return roots, nil
}

// History returns the ancestry of a branch, from the main branch down to itself. Where
// an ancestor was deleted, it begins after that one.
func (c *Conversation) History(ctx context.Context, id string) ([]Branch, error) {
	all, err := c.list(ctx)
	if err != nil {
		return nil, err
	}
	b, err := all.find(id)
	if err != nil {
		return nil, err
	}
	var history []Branch
	for ; b != nil; b = b.parent {
		history = append(history, b.Branch)
	}
	slices.Reverse(history)
	return history, nil
}
