package bundle

import (
	"fmt"
	"math"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// span checks a span and records it with the digest of the history up to it.
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

// block checks and records a block. The root of a large block's tree comes after all other chunks.
func (c *checker) block(b *structure.Block) error {
	if b.Tree.Size != 0 && !has(&c.references, b.Tree.Key) {
		err := c.require("chunk", b.Tree.Key, func() error {
			_, err := c.store.Chunks(c.ctx, []content.Key{b.Tree.Key})
			return err
		})
		if err != nil {
			return err
		}
	}
	c.claimed += min(max(b.Tree.Size, 0), math.MaxInt64-c.claimed)
	add(&c.references, b.ID)
	return nil
}

// Bodies in chunks may have bodiesFrom bytes together, or maxExpansion times the size of the bundle.
const (
	bodiesFrom   = 64 << 30
	maxExpansion = 4096
)

// bodySizes refuses bodies that are much larger than the bundle. The body of a large block is hashed before it is used,
// and a tree of a few chunks can claim any size.
func (c *checker) bodySizes() error {
	if most := max(bodiesFrom, maxExpansion*c.in.offset); c.claimed > most {
		return fmt.Errorf("bundle of %d bytes: bodies of %d bytes in chunks, at most %d: %w", c.in.offset, c.claimed, most, backend.ErrTooLarge)
	}
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
	thread, err := c.requireContext(t.Active)
	if err == nil && thread != t.ID {
		err = c.in.corrupt("context %v is active in thread %v and belongs to another", t.Active, t.ID)
	}
	return err
}
