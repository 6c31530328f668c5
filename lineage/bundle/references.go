package bundle

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// references are the things in the bundle so far. Everything that a record refers to must be among them or in the
// store: if a bad reference were found only when it is applied, earlier parts of the bundle would stay. Contents and
// spans are kept as fingerprints with a random seed, so that nobody can construct a collision.
type references struct {
	seed     maphash.Seed
	known    map[uint64]struct{}
	runs     map[structure.RunID]uint64 // last place
	contexts map[structure.ContextID]structure.ThreadID
	parents  map[structure.ContextID]bool // contexts that others have as parent and that came before them
	bodies   bool                         // the bundle has bodies in chunks
	claimed  int64                        // size of all bodies in chunks, as their blocks state it; at most math.MaxInt64
}

func newReferences() references {
	return references{
		seed: maphash.MakeSeed(), known: make(map[uint64]struct{}), runs: make(map[structure.RunID]uint64),
		contexts: make(map[structure.ContextID]structure.ThreadID), parents: make(map[structure.ContextID]bool),
	}
}

// spanDigest is a span, and the digest of the history up to it.
type spanDigest struct {
	span   structure.SpanRef
	digest structure.Digest
}

// add records a content id, the key of a chunk, the id of a span set, or a span with its digest.
func add[T comparable](r *references, id T) {
	r.known[maphash.Comparable(r.seed, any(id))] = struct{}{}
}

// has reports whether add was called with an id.
func has[T comparable](r *references, id T) bool {
	_, ok := r.known[maphash.Comparable(r.seed, any(id))]
	return ok
}

// require returns an error if find reports that something is not in the store.
func (c *checker) require(what string, id fmt.Stringer, find func() error) error {
	err := find()
	if errors.Is(err, backend.ErrNotFound) {
		return c.in.corrupt("%s %v is neither in the bundle nor here", what, id)
	}
	return err
}

func (c *checker) requireContent(id content.ID) error {
	if has(&c.references, id) {
		return nil
	}
	return c.require("block", id, func() error {
		_, err := c.store.Blocks(c.ctx, []content.ID{id})
		if err == nil || errors.Is(err, backend.ErrErased) {
			add(&c.references, id)
			return nil
		}
		return err
	})
}

func (c *checker) requireSpan(ref structure.SpanRef) error {
	if ref.IsZero() || ref.Seq != 0 && ref.Seq <= c.runs[ref.Run] {
		return nil
	}
	return c.require("span", ref, func() error {
		_, err := c.store.Digest(c.ctx, ref)
		return err
	})
}

func (c *checker) requireSet(id structure.SpanSetID) error {
	if id.IsZero() || has(&c.references, id) {
		return nil
	}
	return c.require("span set", id, func() error {
		_, err := c.store.SpanSet(c.ctx, id)
		return err
	})
}

func (c *checker) requireThread(id structure.ThreadID) error {
	if id.IsZero() || c.owners[structure.Owner{Scope: structure.ThreadScope, Thread: id}] {
		return nil
	}
	return c.require("thread", id, func() error {
		_, err := c.store.Thread(c.ctx, id)
		return err
	})
}

// requireContext checks that there is a context, and returns its thread.
func (c *checker) requireContext(id structure.ContextID) (thread structure.ThreadID, err error) {
	thread, ok := c.contexts[id]
	if ok {
		return thread, nil
	}
	err = c.require("context", id, func() error {
		found, err := c.store.Context(c.ctx, id)
		thread = found.Thread
		return err
	})
	return thread, err
}

// requireBefore checks the digest of the history before the spans of a piece.
func (c *checker) requireBefore(p *runPiece) error {
	ref := structure.SpanRef{Run: p.run.ID, Seq: p.from}
	if p.from == 0 {
		ref = p.run.Parent
	}
	if ref.IsZero() || has(&c.references, spanDigest{ref, p.before}) {
		return nil
	}
	var ours structure.Digest
	err := c.require("span", ref, func() (err error) {
		ours, err = c.store.Digest(c.ctx, ref)
		return err
	})
	if err == nil && ours != p.before {
		err = c.in.corrupt("run %v has the digest of another history", p.run.ID)
	}
	return err
}

// checker reads a whole bundle and looks for damage, contradictions, and omitted things that the store does not have.
type checker struct {
	ctx     context.Context
	in      *reader
	store   backend.Reader
	open    pieces
	left    []content.ID                 // omitted blocks that were not looked up yet
	owners  map[structure.Owner]bool     // possible owners of values
	deleted map[structure.ContextID]bool // contexts with a remnant
	parents map[structure.ContextID]bool // parents that did not come before their children
	missing MissingError
	references
}
