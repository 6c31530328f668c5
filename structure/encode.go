package structure

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/lineage-store/lineage/content"
)

// commitVersion is the first byte of a commit's binary form. Earlier versions were never
// released.
const commitVersion = 4

// Flags of a span record.
const (
	spanInSet    = 1 << iota // a span set id follows
	spanFollowed             // directly follows the span record before it in the commit: no ref
	spanNames                // states ids of content
	spanSeveral              // has several usages, and their number
)

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

// maxTreeSize is the largest possible size of a body that is not in the record.
const maxTreeSize = 1 << 62

// Encoder encodes commits. It keeps its buffers between commits; it is not safe for
// concurrent use.
type Encoder struct {
	buf     []byte
	offsets []int
	body    []byte
	names   Names
	places  []int // indices of the names that the usages of a span use
	written int   // number of these that were written
	plain   appender
}

// Encode returns the binary form of the commit without its number, and the offset of each
// record. Both are valid until the next call. It trusts that block ids and chunk keys
// match their bytes, and does not write those that can be computed.
func (e *Encoder) Encode(c *Commit) (payload []byte, offsets []int, err error) {
	e.buf = append(e.buf[:0], commitVersion)
	e.buf = appendTime(e.buf, c.Time)
	e.names.Reset()
	return e.records(c, SpanRef{})
}

// EncodeRest is like Encode, for records after others of the same commit, given the last span
// and the last names of those. The payload contains only these records, and the offsets
// count from its start.
func (e *Encoder) EncodeRest(c *Commit, last SpanRef, names []content.ID) (payload []byte, offsets []int, err error) {
	e.buf = e.buf[:0]
	e.names.Reset(names...)
	return e.records(c, last)
}

func (e *Encoder) records(c *Commit, last SpanRef) (payload []byte, offsets []int, err error) {
	e.offsets = e.offsets[:0]
	for _, r := range c.Records {
		e.offsets = append(e.offsets, len(e.buf))
		e.body = e.body[:0]
		var tail []byte // the end of the record, not copied to body
		switch r := r.(type) {
		case *Block:
			e.names.Add(r.ID)
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

// block encodes a block record up to its body, which it returns.
func (e *Encoder) block(b *Block) ([]byte, error) {
	if b.Tree.Size < 0 || b.Tree.Size > maxTreeSize || b.Tree.Size == 0 && !b.Tree.Key.IsZero() {
		return nil, fmt.Errorf("block %v with a tree of %d bytes: %w", b.ID, b.Tree.Size, ErrIncomplete)
	}
	head := appendMediaType(e.body, b.Type)
	if b.Origin.Kind > maxOriginKind {
		return nil, fmt.Errorf("block %v of origin kind %d: %w", b.ID, b.Origin.Kind, ErrIncomplete)
	}
	head = appendBlockOrigin(head, &b.Origin)
	head = appendTime(head, b.CreatedAt)
	whole := b.Tree.Size == 0
	switch {
	case b.Gone():
		head = append(head, bodyGone)
		head = append(head, b.ID[:]...)
		head = appendUint(head, uint64(b.Size))
	case whole:
		head = append(head, bodyWhole)
	default:
		head = append(head, bodyTree)
		head = append(head, b.ID[:]...)
		head = append(head, b.Tree.Key[:]...)
		head = append(head, b.Tree.Height)
		head = appendUint(head, uint64(b.Tree.Size))
	}
	// A block may be read without its frame: its body is checked against its id, and the
	// bytes before the body against this checksum.
	e.body = binary.LittleEndian.AppendUint32(head, crc32.Checksum(head, castagnoli))
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
	known := e.names.Len()
	if err := e.place(s); err != nil {
		return err
	}
	var flags byte
	if !s.Set.IsZero() {
		flags |= spanInSet
	}
	followed := follows(s.Ref, last)
	if followed {
		flags |= spanFollowed
	}
	stated := e.names.ids[known:]
	if len(stated) > 0 {
		flags |= spanNames
	}
	if len(s.Usages) > 1 {
		flags |= spanSeveral
	}
	b := append(e.body, flags)
	if !followed {
		b = appendRef(b, s.Ref)
	}
	if !s.Set.IsZero() {
		b = append(b, s.Set[:]...)
	}
	if len(stated) > 0 {
		b = appendUint(b, uint64(len(stated)))
		for i := range stated {
			b = append(b, stated[i][:]...)
		}
	}
	if len(s.Usages) > 1 {
		b = appendUint(b, uint64(len(s.Usages)))
	}
	for i := range s.Usages {
		b = e.usage(b, &s.Usages[i], c)
	}
	e.body = b
	return nil
}

// place finds the names of the content that a span uses, and adds missing ones.
func (e *Encoder) place(s *Span) error {
	e.places, e.written = e.places[:0], 0
	var named [3]*content.ID
	for i := range s.Usages {
		u := &s.Usages[i]
		if err := u.Check(); err != nil {
			return fmt.Errorf("span %v: %w", s.Ref, err)
		}
		for _, id := range u.Named(named[:0]) {
			back := e.names.Back(*id)
			if back < 0 {
				e.names.Add(*id)
				back = 0
			}
			e.places = append(e.places, e.names.Len()-1-back)
		}
	}
	return nil
}

// follows reports whether ref is directly after last in the same run.
func follows(ref, last SpanRef) bool {
	return last.Seq != 0 && ref.Run == last.Run && ref.Seq == last.Seq+1
}

func (e *Encoder) usage(b []byte, u *Usage, c *Commit) []byte {
	present := u.Present()
	b = appendUint(append(b, kindByte(u)), uint64(present))
	b = e.named(b)
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
	return e.announced(b, u, present)
}

// announced encodes the optional fields of a usage.
func (e *Encoder) announced(b []byte, u *Usage, present Present) []byte {
	if present&HasSource != 0 {
		b = appendString(b, u.SourceID)
	}
	if present&HasMetadata != 0 {
		b = appendBytes(b, u.Metadata)
	}
	if present&HasBy != 0 {
		b = appendAttribution(b, &u.By)
	}
	if present&HasForm != 0 {
		b = e.named(b)
	}
	if present&HasName != 0 {
		b = appendString(b, u.Name)
	}
	if present&HasExtras != 0 {
		b = appendUint(b, uint64(len(u.Extras)))
		for _, extra := range u.Extras {
			if isQuoted(extra, u.SourceID) {
				b = append(b, 0)
			} else {
				b = append(appendUint(b, uint64(len(extra))+1), extra...)
			}
		}
	}
	if present&HasOrigin != 0 {
		b = appendBlockOrigin(b, u.Origin)
	}
	if present&HasType != 0 {
		b = appendMediaType(b, u.Type)
	}
	if present&HasVersion != 0 {
		b = appendUint(b, u.Lookup)
	}
	if present&HasMetadataContent != 0 {
		b = e.named(b)
	}
	return b
}

// isQuoted reports whether an extra is the source id as a JSON string: most messages with
// an id also have it in their JSON.
func isQuoted(extra []byte, sourceID string) bool {
	n := len(sourceID)
	return n > 0 && len(extra) == n+2 && extra[0] == '"' && extra[n+1] == '"' && string(extra[1:n+1]) == sourceID
}

// named encodes the next name, counted backwards.
func (e *Encoder) named(b []byte) []byte {
	place := e.places[e.written]
	e.written++
	return appendUint(b, uint64(e.names.Len()-1-place))
}
