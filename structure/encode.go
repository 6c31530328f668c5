package structure

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/lineage-store/lineage/content"
)

// commitVersion is the first byte of a commit's binary form. Version 1 was never released.
const commitVersion = 2

// Flags of a span record.
const (
	spanInSet    = 1 << iota // a span set id follows
	spanFollowed             // directly follows the span record before it in the commit: no ref
)

// usageLocal says that a usage's content is a block of the same commit, given by its place. The other flags of a usage
// are the fields that are present.
const usageLocal Present = 1

// Flags of an attribution.
const (
	byUser = 1 << iota
	byModel
	bySource
)

// Forms of a block's body.
const (
	bodyWhole = 0
	bodyTree  = 1
	bodyGone  = 2
)

// maxTreeSize is the most bytes that a body which is not at hand can claim to have.
const maxTreeSize = 1 << 62

// Encoder turns commits into their binary form. It keeps its buffers between
// commits; it is not safe for concurrent use.
type Encoder struct {
	buf     []byte
	offsets []int
	body    []byte
	blocks  []content.ID
	plain   appender
}

// Encode returns the binary form of the commit without its number, and where
// each record starts in it. Both are valid until the next call. It trusts that a
// block's id and a chunk's key belong to their bytes: neither is written where it
// can be computed.
func (e *Encoder) Encode(c *Commit) (payload []byte, offsets []int, err error) {
	e.buf = append(e.buf[:0], commitVersion)
	e.buf = appendTime(e.buf, c.Time)
	e.blocks = e.blocks[:0]
	return e.records(c, SpanRef{})
}

// EncodeRest is Encode for records that others of the commit stand before: the last
// span among those and the last blocks are given. The payload is that of the records
// alone, and the offsets count from its start.
func (e *Encoder) EncodeRest(c *Commit, last SpanRef, blocks []content.ID) (payload []byte, offsets []int, err error) {
	e.buf = e.buf[:0]
	e.blocks = append(e.blocks[:0], blocks...)
	return e.records(c, last)
}

func (e *Encoder) records(c *Commit, last SpanRef) (payload []byte, offsets []int, err error) {
	e.offsets = e.offsets[:0]
	for _, r := range c.Records {
		e.offsets = append(e.offsets, len(e.buf))
		e.body = e.body[:0]
		var tail []byte // the end of the record, written without a copy into body
		switch r := r.(type) {
		case *Block:
			e.blocks = append(e.blocks, r.ID)
			if tail, err = e.block(r); err != nil {
				return nil, nil, err
			}
		case *Chunk:
			tail = r.Bytes
		case *Span:
			if err := e.span(r, last, c); err != nil {
				return nil, nil, err
			}
			last = r.Ref
		case *Tip:
			if err := checkRef(r.Span); err != nil {
				return nil, nil, fmt.Errorf("tip of %v: %w", r.Context, err)
			}
			e.body = append(e.body, r.Context[:]...)
			if same := !last.IsZero() && r.Span == last; same {
				e.body = append(e.body, 1)
			} else {
				e.body = appendRef(append(e.body, 0), r.Span)
			}
		default:
			if e.body, err = e.plain.record(e.body, r); err != nil {
				return nil, nil, err
			}
		}
		e.buf = append(e.buf, byte(r.Kind()))
		e.buf = appendUint(e.buf, uint64(len(e.body)+len(tail)))
		e.buf = append(append(e.buf, e.body...), tail...)
	}
	return e.buf, e.offsets, nil
}

// block writes a block record up to its body, which it returns.
func (e *Encoder) block(b *Block) ([]byte, error) {
	if b.Tree.Size < 0 || b.Tree.Size > maxTreeSize || b.Tree.Size == 0 && !b.Tree.Key.IsZero() {
		return nil, fmt.Errorf("block %v with a tree of %d bytes: %w", b.ID, b.Tree.Size, ErrIncomplete)
	}
	b0 := appendMediaType(e.body, b.Type)
	if b.Origin.Kind > mostOriginKind {
		return nil, fmt.Errorf("block %v of origin kind %d: %w", b.ID, b.Origin.Kind, ErrIncomplete)
	}
	b0 = appendBlockOrigin(b0, &b.Origin)
	b0 = appendTime(b0, b.CreatedAt)
	whole := b.Tree.Size == 0
	switch {
	case b.Gone():
		b0 = append(b0, bodyGone)
		b0 = append(b0, b.ID[:]...)
		b0 = appendUint(b0, uint64(b.Size))
	case whole:
		b0 = append(b0, bodyWhole)
	default:
		b0 = append(b0, bodyTree)
		b0 = append(b0, b.ID[:]...)
		b0 = append(b0, b.Tree.Key[:]...)
		b0 = append(b0, b.Tree.Height)
		b0 = appendUint(b0, uint64(b.Tree.Size))
	}
	// A block may be read without the frame it came in: its body is checked
	// against its id, and what stands before the body against this.
	e.body = binary.LittleEndian.AppendUint32(b0, crc32.Checksum(b0, castagnoli))
	if whole {
		return b.Body, nil
	}
	return nil, nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func appendMediaType(dst []byte, t string) []byte {
	if code, ok := content.TypeCode(t); ok {
		return append(dst, code)
	}
	return appendString(append(dst, 0), t)
}

// mostOriginKind is the greatest kind of origin that there is room for.
const mostOriginKind = 127

func appendBlockOrigin(dst []byte, o *content.BlockOrigin) []byte {
	if o.ParentID.IsZero() {
		return append(dst, byte(o.Kind)<<1)
	}
	return append(append(dst, byte(o.Kind)<<1|1), o.ParentID[:]...)
}

func appendAttribution(dst []byte, by *content.Attribution) []byte {
	var flags byte
	for i, s := range [...]string{by.UserID, by.ModelID, by.SourceID} {
		if s != "" {
			flags |= 1 << i
		}
	}
	dst = append(dst, flags)
	for _, s := range [...]string{by.UserID, by.ModelID, by.SourceID} {
		if s != "" {
			dst = appendString(dst, s)
		}
	}
	return dst
}

func (e *Encoder) span(s *Span, last SpanRef, c *Commit) error {
	if len(s.Usages) == 0 || s.Ref.Seq == 0 {
		return fmt.Errorf("span %v: %w", s.Ref, ErrIncomplete)
	}
	var flags byte
	if !s.Set.IsZero() {
		flags |= spanInSet
	}
	followed := follows(s.Ref, last)
	if followed {
		flags |= spanFollowed
	}
	b := append(e.body, flags)
	if !followed {
		b = appendRef(b, s.Ref)
	}
	if !s.Set.IsZero() {
		b = append(b, s.Set[:]...)
	}
	b = appendUint(b, uint64(len(s.Usages)))
	for i := range s.Usages {
		u := &s.Usages[i]
		if err := u.Check(); err != nil {
			return fmt.Errorf("span %v: %w", s.Ref, err)
		}
		b = e.usage(b, u, c)
	}
	e.body = b
	return nil
}

// follows reports whether ref is the place directly after last in one run.
func follows(ref, last SpanRef) bool {
	return last.Seq != 0 && ref.Run == last.Run && ref.Seq == last.Seq+1
}

func (e *Encoder) usage(b []byte, u *Usage, c *Commit) []byte {
	flags := u.Present()
	local := e.localBlock(u.Content)
	if local >= 0 {
		flags |= usageLocal
	}
	b = appendUint(append(b, kindByte(u)), uint64(flags))
	if local >= 0 {
		b = appendUint(b, uint64(local))
	} else {
		b = append(b, u.Content[:]...)
	}
	switch u.Kind {
	case MessageUsage:
		number := RoleNumber(u.Role)
		if b = append(b, byte(number)); number == 0 {
			b = appendString(b, u.Role)
		}
	case DocumentUsage:
		b = appendUint(appendString(b, u.Document), u.Revision)
	case AssetUsage:
		b = appendString(b, u.Filename)
	}
	b = appendInt(b, u.CreatedAt.UnixMilli()-c.Time.UnixMilli())
	return e.announced(b, u, flags)
}

// announced writes the fields that the flags of a usage announce.
func (e *Encoder) announced(b []byte, u *Usage, flags Present) []byte {
	if flags&HasSource != 0 {
		b = appendString(b, u.SourceID)
	}
	if flags&HasMetadata != 0 {
		b = appendBytes(b, u.Metadata)
	}
	if flags&HasBy != 0 {
		b = appendAttribution(b, &u.By)
	}
	if flags&HasForm != 0 {
		b = e.named(b, u.Form)
	}
	if flags&HasName != 0 {
		b = appendString(b, u.Name)
	}
	if flags&HasOrigin != 0 {
		b = appendBlockOrigin(b, u.Origin)
	}
	if flags&HasType != 0 {
		b = appendMediaType(b, u.Type)
	}
	if flags&HasVersion != 0 {
		b = appendUint(b, u.Lookup)
	}
	if flags&HasExtras != 0 {
		b = appendUint(b, uint64(len(u.Extras)))
		for _, extra := range u.Extras {
			b = appendBytes(b, extra)
		}
	}
	if flags&HasMetadataContent != 0 {
		b = e.named(b, u.MetadataContent)
	}
	return b
}

// kindByte is the kind of a usage with its piece, which is 0 for plain text.
func kindByte(u *Usage) byte { return byte(u.Kind) | byte(u.Piece)<<4 }

// named writes content by how many blocks back it stands in the commit, plus 1, or 0 and
// its id.
func (e *Encoder) named(b []byte, id content.ID) []byte {
	if back := e.localBlock(id); back >= 0 {
		return appendUint(b, uint64(back)+1)
	}
	return append(append(b, 0), id[:]...)
}

// LocalBlocks is how many blocks before it a usage may name by their place.
const LocalBlocks = 64

// localBlock returns how many blocks before the end of those already written
// the given one stands, or -1. The latest are looked at first: a span usually
// follows its block.
func (e *Encoder) localBlock(id content.ID) int {
	for back := 0; back < len(e.blocks) && back < LocalBlocks; back++ {
		if e.blocks[len(e.blocks)-1-back] == id {
			return back
		}
	}
	return -1
}
