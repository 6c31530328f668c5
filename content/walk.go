package content

import (
	"context"
	"fmt"
	"slices"
)

// Walk calls visit for each node under root, before its children, and for each chunk. Nodes
// are fetched and checked as in TreeReader; chunks are not fetched. A node is visited once
// however often the tree refers to it, a chunk possibly more often, so that the work is
// proportional to the stored data. An error from visit ends the walk and is returned.
func Walk(ctx context.Context, root Root, get GetFunc, visit func(key Key, isNode bool) error) error {
	if err := root.validate(); err != nil || root.IsZero() {
		return err
	}
	w := walker{get: get, visit: visit, seen: make(map[Key]subtree)}
	return w.walk(ctx, root.subtree(), nil)
}

// nodesAtOnce is the largest number of nodes that are fetched together.
const nodesAtOnce = 16

type walker struct {
	get   GetFunc
	visit func(key Key, isNode bool) error
	seen  map[Key]subtree
}

// walk visits a subtree. node has the bytes of its node, or is nil if they must be fetched.
func (w *walker) walk(ctx context.Context, s subtree, node []byte) error {
	if s.height == 0 {
		return w.visit(s.key, false)
	}
	if before, ok := w.seen[s.key]; ok {
		if before.height != s.height || before.size() != s.size() {
			return fmt.Errorf("node %v: %w: described in two ways", s.key, ErrMalformed)
		}
		return nil
	}
	var children []child
	var err error
	if node == nil {
		children, err = s.fetchChildren(ctx, w.get, nil)
	} else {
		children, err = s.children(node, nil)
	}
	if err != nil {
		return err
	}
	w.seen[s.key] = s
	if err := w.visit(s.key, true); err != nil {
		return err
	}
	for batch := range slices.Chunk(children, nodesAtOnce) {
		nodes := w.fetchNodes(ctx, batch, s.height-1)
		for _, c := range batch {
			part := subtree{key: c.key, height: s.height - 1, end: c.size}
			if err := w.walk(ctx, part, nodes[c.key]); err != nil {
				return err
			}
		}
	}
	return nil
}

// fetchNodes returns the nodes of children that were not seen yet, or nil if not all are
// available.
func (w *walker) fetchNodes(ctx context.Context, children []child, height uint8) map[Key][]byte {
	var parts []subtree
	for _, c := range children {
		if _, ok := w.seen[c.key]; !ok && height > 0 && !slices.ContainsFunc(parts, func(s subtree) bool { return s.key == c.key }) {
			parts = append(parts, subtree{key: c.key})
		}
	}
	if len(parts) < 2 {
		return nil
	}
	all, err := fetch(ctx, w.get, "node", parts)
	if err != nil {
		return nil
	}
	nodes := make(map[Key][]byte, len(parts))
	for i, b := range all {
		nodes[parts[i].key] = b
	}
	return nodes
}
