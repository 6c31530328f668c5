package bundle

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// maxOpen limits how many pieces can be incomplete at a time. Pieces are interleaved only if a commit
// has spans of several, or if a span set interrupts one.
const maxOpen = 1 << 16

// checker reads a whole bundle and looks for damage, contradictions, and things left out that the
// store does not have.
type checker struct {
	ctx     context.Context
	in      *reader
	here    backend.Reader
	open    map[structure.RunID]*progress
	left    []content.ID             // blocks that were left out and not yet looked up
	owners  map[structure.Owner]bool // threads and contexts
	missing MissingError
}

// progress is a piece of which spans are missing.
type progress struct {
	piece
	at     uint64 // the last place that was read
	digest structure.Digest
}

func check(ctx context.Context, r io.Reader, here backend.Reader) error {
	in, err := newReader(r)
	if err != nil {
		return err
	}
	defer in.close()
	c := checker{ctx: ctx, in: in, here: here, open: make(map[structure.RunID]*progress), owners: make(map[structure.Owner]bool)}
	if err := in.each(ctx, c.entry); err != nil {
		return err
	}
	for id, p := range c.open {
		return corrupt(in.offset, "run %v ends at place %d and not at %d", id, p.at, p.last)
	}
	if err := c.checkLeft(); err != nil {
		return err
	}
	if c.missing.Count > 0 {
		return &c.missing
	}
	return nil
}

func (c *checker) corrupt(format string, args ...any) error {
	return corrupt(c.in.at, format, args...)
}

func (c *checker) entry(tag byte, b []byte) error {
	switch tag {
	case entryRun:
		return c.piece(b)
	case entryLeftKey:
		return c.leftKey(b)
	}
	commit, err := structure.DecodeCommit(b)
	if errors.Is(err, backend.ErrNewerFormat) || errors.Is(err, backend.ErrOlderFormat) {
		return err
	}
	if err != nil {
		return c.corrupt("%v", err)
	}
	if len(commit.Records) == 0 {
		return c.corrupt("an empty commit")
	}
	switch tag {
	case entryHistory:
		return c.history(commit)
	case entryBody, entryLeft, entryErased:
		return c.descriptions(tag, commit)
	case entryChunks:
		for _, r := range commit.Records {
			if r.Kind() != structure.KindChunk {
				return c.corrupt("a %v among chunks", r.Kind())
			}
		}
		return nil
	case entryFacts:
		return c.facts(commit)
	case entryNames:
		return c.names(commit)
	case entryValues:
		return c.values(commit)
	}
	return c.corrupt("entry of unknown kind %d", tag)
}

func (c *checker) piece(b []byte) error {
	p, ok := decodePiece(b)
	if !ok {
		return c.corrupt("malformed piece of a run")
	}
	if p.run.Parent.IsZero() != p.base.IsZero() {
		return c.corrupt("run %v has the digest of another history", p.run.ID)
	}
	if _, known := c.open[p.run.ID]; known || p.run.Parent.Run == p.run.ID {
		return c.corrupt("run %v follows itself", p.run.ID)
	}
	if p.left {
		if err := c.leftSpans(&p); err != nil {
			return err
		}
	}
	if p.from == p.last {
		return nil
	}
	if len(c.open) >= maxOpen {
		return c.corrupt("too many runs are incomplete")
	}
	c.open[p.run.ID] = &progress{piece: p, at: p.from, digest: p.before}
	return nil
}

// miss counts something that is missing.
func (c *checker) miss(what string) {
	if c.missing.Count++; c.missing.Count == 1 {
		c.missing.First = what
	}
}

func (c *checker) leftSpans(p *piece) error {
	at := structure.SpanRef{Run: p.run.ID, Seq: p.from}
	d, err := c.here.Digest(c.ctx, at)
	if err == nil && d == p.before {
		return nil
	}
	if err == nil || errors.Is(err, backend.ErrNotFound) {
		c.miss("the history up to span " + at.String())
		return nil
	}
	return err
}

func (c *checker) leftKey(b []byte) error {
	if len(b) != len(content.Key{}) {
		return c.corrupt("malformed key")
	}
	key := content.Key(b)
	_, err := c.here.Chunks(c.ctx, []content.Key{key})
	if errors.Is(err, backend.ErrNotFound) {
		c.miss("chunk " + key.String())
		return nil
	}
	return err
}

// checkLeft looks up the blocks that were left out.
func (c *checker) checkLeft() error {
	has, err := c.here.Has(c.ctx, c.left)
	if err != nil {
		return err
	}
	for i, id := range c.left {
		if has[i] {
			continue
		}
		if _, err := c.here.Blocks(c.ctx, []content.ID{id}); errors.Is(err, backend.ErrNotFound) {
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
		switch r := r.(type) {
		case *structure.Block:
			if r.Gone() {
				return c.corrupt("block %v has no bytes", r.ID)
			}
		case *structure.SpanSet:
		case *structure.Span:
			p := c.open[r.Ref.Run]
			if p == nil || r.Ref.Seq != p.at+1 {
				return c.corrupt("span %v is in no piece, or out of order", r.Ref)
			}
			p.at++
			p.digest = structure.NextDigest(p.digest, r.Usages)
			if p.at < p.last {
				continue
			}
			if p.digest != p.piece.digest {
				return c.corrupt("the history up to span %v has another digest", r.Ref)
			}
			delete(c.open, r.Ref.Run)
		default:
			return c.corrupt("a %v in a history", r.Kind())
		}
	}
	return nil
}

func (c *checker) descriptions(tag byte, commit *structure.Commit) error {
	if len(commit.Records) != 1 {
		return c.corrupt("several descriptions in an entry")
	}
	b, ok := commit.Records[0].(*structure.Block)
	if !ok || !b.Gone() && (b.Size != 0 || tag == entryBody) {
		return c.corrupt("a malformed description")
	}
	if tag != entryLeft {
		return nil
	}
	if c.left = append(c.left, b.ID); len(c.left) < 512 {
		return nil
	}
	return c.checkLeft()
}

func (c *checker) facts(commit *structure.Commit) error {
	var of structure.ContextID
	for _, r := range commit.Records {
		about := of
		switch r := r.(type) {
		case *structure.Thread:
			if of = (structure.ContextID{}); !r.Active.IsZero() || r.ID.IsZero() {
				return c.corrupt("thread %v before its contexts", r.ID)
			}
			c.owners[structure.Owner{Scope: structure.ThreadScope, Thread: r.ID}] = true
			about = of
		case *structure.Context:
			if of = r.ID; of.IsZero() {
				return c.corrupt("a context without an id")
			}
			c.owners[structure.Owner{Scope: structure.ContextScope, Context: r.ID}] = true
			about = of
		case *structure.Reflog:
			about = r.Context
		case *structure.Summary:
			about = r.Context
		default:
			return c.corrupt("a %v among contexts", r.Kind())
		}
		if about != of {
			return c.corrupt("a %v of context %v is among those of context %v", r.Kind(), about, of)
		}
	}
	return nil
}

func (c *checker) values(commit *structure.Commit) error {
	for _, r := range commit.Records {
		v, ok := r.(*structure.Value)
		if !ok {
			return c.corrupt("a %v among values", r.Kind())
		}
		if v.JSON != nil && !json.Valid(v.JSON) {
			return c.corrupt("value %v is not JSON", v.Name())
		}
		if v.Owner.Scope != structure.ThreadScope && v.Owner.Scope != structure.ContextScope {
			continue
		}
		if !c.owners[v.Owner] {
			return c.corrupt("the owner of value %v is not in the bundle", v.Name())
		}
	}
	return nil
}

func (c *checker) names(commit *structure.Commit) error {
	last := len(commit.Records) - 1
	t, ok := commit.Records[last].(*structure.Thread)
	if !ok {
		return c.corrupt("names without their thread")
	}
	for _, r := range commit.Records[:last] {
		var of structure.ThreadID
		switch r := r.(type) {
		case *structure.Branch:
			of = r.Thread
		case *structure.Checkpoint:
			of = r.Thread
		default:
			return c.corrupt("a %v among names", r.Kind())
		}
		if of != t.ID {
			return c.corrupt("a name of thread %v is among those of thread %v", of, t.ID)
		}
	}
	return nil
}
