package bundle

import (
	"errors"
	"fmt"
	"hash/maphash"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// references are what a bundle has had so far. Everything that a record refers to must be among them or
// in the store, because what was applied before a record that is refused would stay. Contents and
// spans are known by fingerprints, which nobody can choose.
type references struct {
	seed     maphash.Seed
	had      map[uint64]struct{}
	runs     map[structure.RunID]uint64 // last place
	contexts map[structure.ContextID]structure.ThreadID
	parents  map[structure.ContextID]bool // of contexts, that were not there before them
	bodies   bool                         // there are bodies in chunks
}

func newReferences() references {
	return references{
		seed: maphash.MakeSeed(), had: make(map[uint64]struct{}), runs: make(map[structure.RunID]uint64),
		contexts: make(map[structure.ContextID]structure.ThreadID), parents: make(map[structure.ContextID]bool),
	}
}

// spanDigest is a span, and the digest of the history up to it.
type spanDigest struct {
	span   structure.SpanRef
	digest structure.Digest
}

// add notes a content id, the key of a chunk, the id of a span set, or a span and its digest.
func add[T comparable](r *references, id T) { r.had[maphash.Comparable(r.seed, any(id))] = struct{}{} }

// has reports whether the bundle had something.
func has[T comparable](r *references, id T) bool {
	_, ok := r.had[maphash.Comparable(r.seed, any(id))]
	return ok
}

// require returns an error for something that is not in the store, where find looks for it.
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
		_, err := c.here.Blocks(c.ctx, []content.ID{id})
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
		_, err := c.here.Digest(c.ctx, ref)
		return err
	})
}

func (c *checker) requireSet(id structure.SpanSetID) error {
	if id.IsZero() || has(&c.references, id) {
		return nil
	}
	return c.require("span set", id, func() error {
		_, err := c.here.SpanSet(c.ctx, id)
		return err
	})
}

func (c *checker) requireThread(id structure.ThreadID) error {
	if id.IsZero() || c.owners[structure.Owner{Scope: structure.ThreadScope, Thread: id}] {
		return nil
	}
	return c.require("thread", id, func() error {
		_, err := c.here.Thread(c.ctx, id)
		return err
	})
}

// requireContext returns the thread of a context.
func (c *checker) requireContext(id structure.ContextID) (of structure.ThreadID, err error) {
	of, ok := c.contexts[id]
	if ok {
		return of, nil
	}
	err = c.require("context", id, func() error {
		found, err := c.here.Context(c.ctx, id)
		of = found.Thread
		return err
	})
	return of, err
}

// requireBefore checks the digest of the history that the spans of a piece follow.
func (c *checker) requireBefore(p *piece) error {
	ref := structure.SpanRef{Run: p.run.ID, Seq: p.from}
	if p.from == 0 {
		ref = p.run.Parent
	}
	if ref.IsZero() || has(&c.references, spanDigest{ref, p.before}) {
		return nil
	}
	var ours structure.Digest
	err := c.require("span", ref, func() (err error) {
		ours, err = c.here.Digest(c.ctx, ref)
		return err
	})
	if err == nil && ours != p.before {
		err = c.in.corrupt("run %v has the digest of another history", p.run.ID)
	}
	return err
}

// span checks a span, and notes it with the digest of the history up to it.
func (c *checker) span(s *structure.Span, digest structure.Digest) error {
	if len(s.Usages) == 0 {
		return c.in.corrupt("span %v says nothing", s.Ref)
	}
	if err := c.requireSet(s.Set); err != nil {
		return err
	}
	for i := range s.Usages {
		if err := s.Usages[i].Check(); err != nil {
			return c.in.corrupt("span %v: %v", s.Ref, err)
		}
		for _, id := range s.Usages[i].Named(nil) {
			if err := c.requireContent(*id); err != nil {
				return err
			}
		}
	}
	add(&c.references, spanDigest{s.Ref, digest})
	c.runs[s.Ref.Run] = s.Ref.Seq
	return nil
}

// block notes a block. The root of its tree comes after all other chunks.
func (c *checker) block(b *structure.Block) error {
	if b.Tree.Size != 0 && !has(&c.references, b.Tree.Key) {
		err := c.require("chunk", b.Tree.Key, func() error {
			_, err := c.here.Chunks(c.ctx, []content.Key{b.Tree.Key})
			return err
		})
		if err != nil {
			return err
		}
	}
	add(&c.references, b.ID)
	return nil
}

func (c *checker) chunks(commit *structure.Commit) {
	c.bodies = true
	for _, r := range commit.Records {
		add(&c.references, r.(*structure.Chunk).Key)
	}
}

func (c *checker) spanSet(s *structure.SpanSet) error {
	add(&c.references, s.ID)
	return c.requireSpan(s.Parent)
}

// context checks a context with its reflog and summaries.
func (c *checker) context(t *theirs) error {
	if c.parents[t.ID] || t.Parent == t.ID {
		return c.in.corrupt("context %v comes after its child", t.ID)
	}
	if _, before := c.contexts[t.Parent]; !before && !t.Parent.IsZero() {
		c.parents[t.Parent] = true
	}
	c.contexts[t.ID] = t.Thread
	err := c.requireThread(t.Thread)
	if err == nil {
		err = c.requireSet(t.Set)
	}
	refs := []structure.SpanRef{t.Base, t.Tip}
	for _, r := range t.reflog {
		refs = append(refs, r.From, r.To)
	}
	for _, s := range t.summaries {
		if s.ID.IsZero() {
			return c.in.corrupt("a summary of context %v without an id", t.ID)
		}
		if err == nil {
			err = c.requireContent(s.Content)
		}
		refs = append(refs, s.From, s.To)
	}
	for _, ref := range refs {
		if err == nil {
			err = c.requireSpan(ref)
		}
	}
	return err
}

// names checks the names of a thread, and the thread.
func (c *checker) names(commit *structure.Commit) error {
	t := commit.Records[len(commit.Records)-1].(*structure.Thread)
	err := c.requireThread(t.ID)
	for _, r := range commit.Records {
		switch r := r.(type) {
		case *structure.Branch:
			if err == nil {
				_, err = c.requireContext(r.Context)
			}
		case *structure.Checkpoint:
			if r.ID.IsZero() || r.Span.IsZero() {
				return c.in.corrupt("a checkpoint of thread %v without an id or span", t.ID)
			}
			if err == nil {
				err = c.requireSpan(r.Span)
			}
		}
	}
	if err != nil || t.Active.IsZero() {
		return err
	}
	of, err := c.requireContext(t.Active)
	if err == nil && of != t.ID {
		err = c.in.corrupt("context %v is active in thread %v and belongs to another", t.Active, t.ID)
	}
	return err
}
