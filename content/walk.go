package content

import (
	"context"
	"fmt"
)

// Walk calls visit for each node under root, before what is below it, and for
// each chunk. Nodes are fetched and checked as TreeReader does; chunks are not
// fetched. A node is visited once however often the tree names it, a chunk may be
// visited again, so that the work is in proportion to what is stored. An error
// from visit ends the walk and is returned.
func Walk(ctx context.Context, root Root, get GetFunc, visit func(key Key, isNode bool) error) error {
	if err := root.validate(); err != nil || root.IsZero() {
		return err
	}
	w := walker{get: get, visit: visit, seen: make(map[Key]subtree)}
	return w.walk(ctx, root.subtree())
}

type walker struct {
	get   GetFunc
	visit func(key Key, isNode bool) error
	seen  map[Key]subtree
}

func (w *walker) walk(ctx context.Context, s subtree) error {
	if s.height == 0 {
		return w.visit(s.key, false)
	}
	if before, ok := w.seen[s.key]; ok {
		if before.height != s.height || before.size() != s.size() {
			return fmt.Errorf("node %v: %w: described in two ways", s.key, ErrMalformed)
		}
		return nil
	}
	children, err := s.fetchChildren(ctx, w.get, nil)
	if err != nil {
		return err
	}
	w.seen[s.key] = s
	if err := w.visit(s.key, true); err != nil {
		return err
	}
	for _, c := range children {
		part := subtree{key: c.key, height: s.height - 1, end: c.size}
		if err := w.walk(ctx, part); err != nil {
			return err
		}
	}
	return nil
}
