package bundle

import (
	"context"
	"errors"
	"io"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// maxOpen limits the pieces that can be incomplete at a time. Pieces are interleaved only if a commit has spans of
// several, or if a span set interrupts one.
const maxOpen = 1 << 16

// maxLeft limits the omitted blocks that are looked up together.
const maxLeft = 512

// check checks a whole bundle. It reports whether the bundle has bodies in chunks.
func check(ctx context.Context, r io.Reader, store backend.Reader) (bodies bool, err error) {
	in, err := newReader(r)
	if err != nil {
		return false, err
	}
	defer in.close()
	c := checker{ctx: ctx, in: in, store: store, open: make(pieces), owners: make(map[structure.Owner]bool),
		deleted: make(map[structure.ContextID]bool), parents: make(map[structure.ContextID]bool), references: newReferences()}
	if err := in.each(ctx, c.entry); err != nil {
		return false, err
	}
	for id, p := range c.open {
		return false, corrupt(in.offset, "run %v ends at place %d and not at %d", id, p.at, p.last)
	}
	if err := c.bodySizes(); err != nil {
		return false, err
	}
	if err := c.checkLeft(); err != nil {
		return false, err
	}
	if c.missing.Count > 0 {
		return false, &c.missing
	}
	return c.bodies, nil
}

func (c *checker) entry(e *decodedEntry) error {
	switch e.tag {
	case entryRun:
		return c.piece(&e.piece)
	case entryHistory:
		return c.history(e.commit)
	case entryChunks:
		c.chunks(e.commit)
	case entryErased:
		return c.block(e.block())
	case entryLeft:
		add(&c.references, e.block().ID)
		if c.left = append(c.left, e.block().ID); len(c.left) == maxLeft {
			return c.checkLeft()
		}
	case entryLeftKey:
		return c.leftKey(e.key)
	case entryFacts:
		for i := range e.facts {
			if err := c.fact(&e.facts[i]); err != nil {
				return err
			}
		}
	case entryNames:
		return c.names(e.commit)
	case entryValues:
		return c.values(e.commit)
	}
	return nil
}

// fact checks that a thread, context or remnant occurs once, and that contexts and remnants come after their parents.
func (c *checker) fact(f *fact) error {
	owner := f.owner
	if c.owners[owner] || c.deleted[owner.Context] {
		return c.in.corrupt("%v is there twice", owner)
	}
	var parent structure.ContextID
	switch {
	case f.thread != nil:
		c.owners[owner] = true
		return nil
	case f.remnant != nil:
		c.deleted[owner.Context], parent = true, f.remnant.Parent
	default:
		c.owners[owner], parent = true, f.Parent
	}
	if c.parents[owner.Context] {
		return c.in.corrupt("context %v comes after its child", owner.Context)
	}
	if !parent.IsZero() && !c.deleted[parent] && !c.owners[structure.Owner{Scope: structure.ContextScope, Context: parent}] {
		c.parents[parent] = true
	}
	if f.remnant != nil {
		return nil
	}
	return c.context(&f.theirs)
}

func (c *checker) piece(p *runPiece) error {
	if p.run.Parent.IsZero() != p.base.IsZero() {
		return c.in.corrupt("run %v has the digest of another history", p.run.ID)
	}
	if c.open[p.run.ID] != nil || p.run.Parent.Run == p.run.ID {
		return c.in.corrupt("run %v follows itself", p.run.ID)
	}
	if p.omitted {
		if err := c.leftSpans(p); err != nil {
			return err
		}
	}
	c.runs[p.run.ID] = max(c.runs[p.run.ID], p.from)
	if len(c.open) >= maxOpen {
		return c.in.corrupt("too many runs are incomplete")
	}
	c.open.begin(p)
	return nil
}

// miss counts a missing thing.
func (c *checker) miss(what string) {
	if c.missing.Count++; c.missing.Count == 1 {
		c.missing.First = what
	}
}

func (c *checker) leftSpans(p *runPiece) error {
	at := structure.SpanRef{Run: p.run.ID, Seq: p.from}
	d, err := c.store.Digest(c.ctx, at)
	if err == nil && d == p.before {
		return nil
	}
	if err == nil || errors.Is(err, backend.ErrNotFound) {
		c.miss("the history up to span " + at.String())
		return nil
	}
	return err
}

func (c *checker) leftKey(key content.Key) error {
	add(&c.references, key)
	_, err := c.store.Chunks(c.ctx, []content.Key{key})
	if errors.Is(err, backend.ErrNotFound) {
		c.miss("chunk " + key.String())
		return nil
	}
	return err
}

// checkLeft looks up the omitted blocks in the store.
func (c *checker) checkLeft() error {
	has, err := c.store.Has(c.ctx, c.left)
	if err != nil {
		return err
	}
	for i, id := range c.left {
		if has[i] {
			continue
		}
		if _, err := c.store.Blocks(c.ctx, []content.ID{id}); errors.Is(err, backend.ErrNotFound) {
			c.miss("block " + id.String())
		} else if err != nil && !errors.Is(err, backend.ErrErased) {
			return err
		}
	}
	c.left = c.left[:0]
	return nil
}

func (c *checker) history(commit *structure.Commit) error {
	for _, r := range commit.Records {
		var err error
		switch r := r.(type) {
		case *structure.Block:
			err = c.block(r)
		case *structure.SpanSet:
			err = c.spanSet(r)
		case *structure.Span:
			err = c.spanOfPiece(r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) spanOfPiece(s *structure.Span) error {
	p := c.open.of(s)
	if p == nil {
		return c.in.corrupt("span %v is in no piece, or out of order", s.Ref)
	}
	if p.at == p.from && !p.omitted {
		if err := c.requireBefore(&p.runPiece); err != nil {
			return err
		}
	}
	digest := structure.NextDigest(p.digest, s.Usages)
	if err := c.span(s, digest); err != nil {
		return err
	}
	c.open.advance(p, digest)
	if p.at == p.last && p.digest != p.runPiece.digest {
		return c.in.corrupt("the history up to span %v has another digest", s.Ref)
	}
	return nil
}

// values checks that the owners of values are in the bundle.
func (c *checker) values(commit *structure.Commit) error {
	for _, r := range commit.Records {
		v := r.(*structure.Value)
		owned := v.Owner.Scope == structure.ThreadScope || v.Owner.Scope == structure.ContextScope
		if owned && !c.owners[v.Owner] {
			return c.in.corrupt("the owner of value %v is not in the bundle", v.Name())
		}
		if err := v.Check(); err != nil {
			return c.in.corrupt("value %v: %v", v.Name(), err)
		}
		if !v.Content.IsZero() {
			if err := c.requireContent(v.Content); err != nil {
				return err
			}
		}
	}
	return nil
}
