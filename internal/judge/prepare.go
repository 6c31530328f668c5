package judge

import (
	"fmt"
	"slices"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Stored tells which content a store has.
type Stored interface {
	// HasBlock reports whether the bytes of a block are there: it is not erased.
	HasBlock(content.ID) (bool, error)
	HasChunk(content.Key) (bool, error)
}

// Preparation makes of a commit what is judged and stored: without the content that the
// store already has. What it does takes time and no lock.
type Preparation struct {
	Commit structure.Commit
	// Contents is how many blocks and chunks the whole commit has.
	Contents int
	// Known lists the blocks that were left out, KnownChunks counts the chunks.
	Known       []content.ID
	KnownChunks int

	source *structure.Commit
	first  map[content.ID]int // of each id or key, the first record: see earlier
}

// Begin checks the content of a commit against its ids and keys, and its values. Nothing is
// left out yet.
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

// Release lets go of the commit.
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

// LeaveOut leaves out the content that the store has, or that the commit brings twice, and
// reports whether that changed what is left. It may be called again for a later state.
func (p *Preparation) LeaveOut(stored Stored) (changed bool, err error) {
	before := p.Commit.Records
	p.Known, p.KnownChunks = p.Known[:0], 0
	if p.Contents == 0 {
		return false, nil
	}
	kept, dropped := p.source.Records, false
	drop := func(i int) {
		if !dropped {
			kept, dropped = append(make([]structure.Record, 0, len(kept)), kept[:i]...), true
		}
	}
	var gone []content.ID       // erased by a record before
	var left []*structure.Block // left out
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
			kept = append(kept, r)
		}
	}
	keepOrigins(kept, left)
	p.Commit.Records = kept
	return !slices.Equal(kept, before), nil
}

// earlier reports whether the source brings the same content before record i.
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

// HashOf returns the id or key of content; the two are hashes of different kinds
// and do not meet.
func HashOf(r structure.Record) (content.ID, bool) {
	switch r := r.(type) {
	case *structure.Block:
		return r.ID, true
	case *structure.Chunk:
		return content.ID(r.Key), true
	}
	return content.ID{}, false
}

// keepOrigins gives usages that leave type and origin to a block of the commit
// what that block says, if it was left out for the store has it from elsewhere.
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

// withOrigins returns the span, or a copy whose usages say what they left to the
// blocks offered.
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
