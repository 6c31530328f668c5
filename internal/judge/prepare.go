package judge

import (
	"fmt"
	"slices"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Stored reports which content a store has.
type Stored interface {
	// HasBlock reports whether a block is stored and not erased.
	HasBlock(content.ID) (bool, error)
	HasChunk(content.Key) (bool, error)
}

// Preparation checks a commit and drops content that the store already has. This takes
// time, but no lock.
type Preparation struct {
	Commit structure.Commit
	// Contents is the number of blocks and chunks in the original commit.
	Contents int
	// Known lists the dropped blocks, KnownChunks counts the dropped chunks.
	Known       []content.ID
	KnownChunks int

	source *structure.Commit
	first  map[content.ID]int // index of the first record of each id or key: see earlier
}

// Begin checks the ids and keys of the content of a commit, and its values. Nothing is
// dropped yet.
func (p *Preparation) Begin(source *structure.Commit) error {
	*p = Preparation{source: source, Known: p.Known[:0]}
	if len(source.Records) == 0 {
		return fmt.Errorf("commit without records: %w", backend.ErrInvalid)
	}
	p.Commit.Records = source.Records
	p.Commit.Time = source.Time
	if p.Commit.Time.IsZero() {
		p.Commit.Time = time.Now()
	}
	for i, r := range source.Records {
		switch r := r.(type) {
		case nil:
			return fmt.Errorf("record %d is nil: %w", i, backend.ErrInvalid)
		case *structure.Block:
			p.Contents++
			if r.Gone() && erasedAfter(source.Records[i:], r.ID) {
				continue
			}
			if err := checkBlock(r); err != nil {
				return err
			}
		case *structure.Chunk:
			p.Contents++
			if content.KeyOf(r.Bytes) != r.Key {
				return refusal("chunk", r.Key, backend.ErrInvalid, "key does not match the bytes")
			}
		case *structure.Value:
			if err := checkValue(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// Release releases the commit.
func (p *Preparation) Release() { *p = Preparation{} }

// erasedAfter reports whether records erase content.
func erasedAfter(records []structure.Record, id content.ID) bool {
	return slices.ContainsFunc(records, func(r structure.Record) bool {
		d, ok := r.(*structure.Deletion)
		return ok && d.Subject == structure.KindBlock && d.Content == id
	})
}

func checkBlock(b *structure.Block) error {
	if b.Tree.Size != 0 {
		if b.Body != nil || b.Size != b.Tree.Size || b.ID.IsZero() {
			return refusal("block", b.ID, backend.ErrInvalid, "tree and body disagree")
		}
		return nil
	}
	if b.Summed() && b.Size == int64(len(b.Body)) {
		return nil
	}
	if b.Size != int64(len(b.Body)) || b.ID != content.Sum(b.Body) {
		return refusal("block", b.ID, backend.ErrInvalid, "id or size does not match the body")
	}
	return nil
}

// DropKnown drops content that the store has or that occurs twice, and reports whether the
// remaining records changed. It may be called again for a later state.
func (p *Preparation) DropKnown(stored Stored) (changed bool, err error) {
	before := p.Commit.Records
	p.Known, p.KnownChunks = p.Known[:0], 0
	if p.Contents == 0 {
		return false, nil
	}
	records, dropped := p.source.Records, false
	drop := func(i int) {
		if !dropped {
			records, dropped = append(make([]structure.Record, 0, len(records)), records[:i]...), true
		}
	}
	var gone []content.ID       // erased by an earlier record
	var left []*structure.Block // dropped
	for i, r := range p.source.Records {
		known := false
		switch r := r.(type) {
		case *structure.Block:
			if known = p.earlier(i, r); !known {
				if known, err = stored.HasBlock(r.ID); err != nil {
					return false, err
				}
			}
			if at := slices.Index(gone, r.ID); at >= 0 {
				known, gone = false, slices.Delete(gone, at, at+1)
			}
			if known && r.Gone() {
				return false, refusal("block", r.ID, backend.ErrExists, "it was not erased here")
			}
			if known {
				p.Known, left = append(p.Known, r.ID), append(left, r)
			}
		case *structure.Chunk:
			if known = p.earlier(i, r); !known {
				if known, err = stored.HasChunk(r.Key); err != nil {
					return false, err
				}
			}
			if known {
				p.KnownChunks++
			}
		case *structure.Deletion:
			if r.Subject == structure.KindBlock && !slices.Contains(gone, r.Content) {
				gone = append(gone, r.Content)
			}
		}
		if known {
			drop(i)
		} else if dropped {
			records = append(records, r)
		}
	}
	keepOrigins(records, left)
	p.Commit.Records = records
	return !slices.Equal(records, before), nil
}

// earlier reports whether the commit has the same content before record i.
func (p *Preparation) earlier(i int, r structure.Record) bool {
	if p.Contents == 1 {
		return false
	}
	if p.first == nil {
		p.first = make(map[content.ID]int, p.Contents)
		for k, r := range p.source.Records {
			id, ok := HashOf(r)
			if _, known := p.first[id]; ok && !known {
				p.first[id] = k
			}
		}
	}
	id, _ := HashOf(r)
	return p.first[id] < i
}

// HashOf returns the id or key of content. They are different hashes, so they do not
// collide.
func HashOf(r structure.Record) (content.ID, bool) {
	switch r := r.(type) {
	case *structure.Block:
		return r.ID, true
	case *structure.Chunk:
		return content.ID(r.Key), true
	}
	return content.ID{}, false
}

// keepOrigins sets type and origin in usages that rely on a block of the commit, if that
// block was dropped because the store has it from elsewhere.
func keepOrigins(kept []structure.Record, left []*structure.Block) {
	if len(left) == 0 {
		return
	}
	offered := make(map[content.ID]*structure.Block, len(left))
	for _, b := range left {
		if offered[b.ID] == nil {
			offered[b.ID] = b
		}
	}
	for i, r := range kept {
		if b, ok := r.(*structure.Block); ok {
			delete(offered, b.ID)
			continue
		}
		if s, ok := r.(*structure.Span); ok {
			kept[i] = withOrigins(s, offered)
		}
	}
}

// withOrigins returns the span, or a copy with types and origins from the offered blocks.
func withOrigins(s *structure.Span, offered map[content.ID]*structure.Block) *structure.Span {
	own := s
	for i := range s.Usages {
		b := offered[s.Usages[i].Content]
		if b == nil {
			continue
		}
		if own == s {
			own = &structure.Span{Ref: s.Ref, Set: s.Set, Usages: slices.Clone(s.Usages)}
		}
		own.Usages[i].Settle(&b.Block)
	}
	return own
}
