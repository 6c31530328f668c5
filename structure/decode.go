package structure

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/lineage-store/lineage/content"
)

// Decoder reads a commit's binary form record by record. What it returns shares
// memory with the payload, which must not change afterwards.
//
// It refuses every form that the encoder would not write, with two exceptions
// that leave room for encoders to come: a name that has a number may be spelled
// out, and a block of the commit may be referred to by its id or, where it stands
// there more than once, by any of its places.
type Decoder struct {
	// Time is the commit's time.
	Time time.Time

	c      cursor
	size   int
	blocks []content.ID
	last   SpanRef
	plain  cursor // of the record that is being read
}

// NewDecoder starts reading a payload.
func NewDecoder(payload []byte) (*Decoder, error) {
	d := &Decoder{}
	return d, d.Reset(payload)
}

// Reset starts reading another payload and keeps the decoder's buffers.
func (d *Decoder) Reset(payload []byte) error {
	*d = Decoder{c: cursor{rest: payload}, size: len(payload), blocks: d.blocks[:0]}
	if v := d.c.byte("version"); d.c.err == nil && v != commitVersion {
		why := ErrUnknownVersion
		if v < commitVersion {
			why = ErrOldVersion
		}
		d.c.rest, d.c.err = nil, fmt.Errorf("%w: commit version %d, this program knows %d", why, v, commitVersion)
		return d.c.err
	}
	d.Time = d.c.time("time")
	return d.c.err
}

// More reports whether records are left.
func (d *Decoder) More() bool { return len(d.c.rest) > 0 && d.c.err == nil }

// Next returns the next record and where it starts in the payload. After the
// last it must not be called: see More. After an error nothing more is read.
func (d *Decoder) Next() (offset int, r Record, err error) {
	offset = d.size - len(d.c.rest)
	kind, body := d.c.record()
	if d.c.err != nil {
		return offset, nil, d.c.err
	}
	c := cursor{rest: body}
	switch kind {
	case KindBlock:
		b := &Block{}
		c.block(b)
		d.blocks = append(d.blocks, b.ID)
		r = b
	case KindChunk:
		r = &Chunk{Key: content.KeyOf(body), Bytes: body}
		c.rest = nil
	case KindSpan:
		s := &Span{}
		c.span(s, d.last, d.Time, d)
		d.last = s.Ref
		r = s
	case KindTip:
		r = d.tip(&c)
	default:
		d.plain = c
		r = d.plain.plain(kind)
		c, d.plain = d.plain, cursor{}
	}
	if err := d.ends(&c, kind, offset); err != nil {
		return offset, nil, err
	}
	return offset, r, nil
}

// ends requires that a record was read well and to its end. Otherwise nothing more
// is read.
func (d *Decoder) ends(c *cursor, kind Kind, offset int) error {
	if err := c.end(); err != nil {
		d.c.rest, d.c.err = nil, fmt.Errorf("%v at byte %d: %w", kind, offset, err)
	}
	return d.c.err
}

// DecodeCommit reads a whole commit; its Number is left zero.
func DecodeCommit(payload []byte) (*Commit, error) {
	d, err := NewDecoder(payload)
	if err != nil {
		return nil, err
	}
	commit := &Commit{Time: d.Time}
	for d.More() {
		_, r, err := d.Next()
		if err != nil {
			return nil, err
		}
		commit.Records = append(commit.Records, r)
	}
	return commit, d.c.err
}

// RecordSize returns how many bytes the record at the start of b takes, of which
// b may hold only the beginning, or 0 when b does not tell. Nothing checks that
// the record is whole or that its size is sane.
func RecordSize(b []byte) int {
	c := cursor{rest: b}
	c.byte("kind")
	n := c.uint("length")
	if c.err != nil || n > 1<<40 {
		return 0
	}
	return len(b) - len(c.rest) + int(n)
}

// DecodeObject reads the block or chunk record that b consists of. The id or key
// it returns is computed from the bytes, except for the id of a block that was
// cut into chunks, which is the one recorded.
func DecodeObject(b []byte) (Record, error) {
	outer := cursor{rest: b}
	kind, body := outer.record()
	if err := outer.end(); err != nil {
		return nil, err
	}
	switch kind {
	case KindBlock:
		c, block := cursor{rest: body}, &Block{}
		c.block(block)
		if err := c.end(); err != nil {
			return nil, err
		}
		return block, nil
	case KindChunk:
		return &Chunk{Key: content.KeyOf(body), Bytes: body}, nil
	}
	return nil, fmt.Errorf("%w: %v where content was expected", ErrMalformed, kind)
}

func (c *cursor) record() (Kind, []byte) {
	kind := Kind(c.byte("record kind"))
	return kind, c.bytes("record")
}

func (c *cursor) mediaType() string {
	code := c.byte("media type")
	if code == 0 {
		return c.string("media type")
	}
	t, ok := content.TypeOfCode(code)
	if !ok && c.err == nil {
		c.err = fmt.Errorf("%w: media type %d", ErrUnknownVersion, code)
	}
	return t
}

func (c *cursor) blockOrigin() (o content.BlockOrigin) {
	kind := c.byte("origin kind")
	o.Kind = content.OriginKind(kind >> 1)
	if kind&1 != 0 {
		if o.ParentID = c.contentID("parent content"); o.ParentID.IsZero() {
			c.fail("parent content is announced but absent")
		}
	}
	return o
}

func (c *cursor) attribution() (by content.Attribution) {
	flags := c.byte("attribution flags")
	if flags == 0 || flags >= bySource<<1 {
		c.fail("unknown attribution flags")
	}
	if flags&byUser != 0 {
		by.UserID = c.someString("user id")
	}
	if flags&byModel != 0 {
		by.ModelID = c.someString("model id")
	}
	if flags&bySource != 0 {
		by.SourceID = c.someString("source id")
	}
	return by
}

func (c *cursor) block(b *Block) {
	start := c.rest
	b.Type, b.Origin, b.CreatedAt = c.mediaType(), c.blockOrigin(), c.time("created")
	form := c.byte("body form")
	switch form {
	case bodyWhole:
	case bodyTree:
		b.ID = c.contentID("content id")
		copy(b.Tree.Key[:], c.take(uint64(len(b.Tree.Key)), "tree key"))
		b.Tree.Height = c.byte("tree height")
		size := c.uint("size")
		if size == 0 || size > maxTreeSize {
			c.fail("impossible size of a tree")
		}
		b.Tree.Size = int64(size)
		b.Size = b.Tree.Size
	case bodyGone:
		b.ID = c.contentID("content id")
		size := c.uint("size")
		if size == 0 || size > maxTreeSize {
			c.fail("impossible size of a body")
		}
		b.Size = int64(size)
	default:
		c.fail("unknown form of a body")
	}
	head := start[:len(start)-len(c.rest)]
	sum := c.take(4, "checksum")
	if c.err == nil && binary.LittleEndian.Uint32(sum) != crc32.Checksum(head, castagnoli) {
		c.fail("checksum does not match")
	}
	if c.err == nil && form == bodyWhole {
		b.Body = c.rest
		b.ID, b.Size = content.Sum(b.Body), int64(len(b.Body))
		c.rest = nil
	}
}

// locals are the blocks of a commit before one of its spans.
type locals interface {
	// local returns the id of the block so many back, for a usage of the span.
	local(usage int, back uint64) (content.ID, error)
	// aside is local for content that a usage names beside its own.
	aside(back uint64) (content.ID, error)
}

var errNotLocal = fmt.Errorf("%w: usage of a block that the commit does not hold", ErrMalformed)

func (d *Decoder) local(_ int, back uint64) (content.ID, error) { return d.aside(back) }

func (d *Decoder) aside(back uint64) (content.ID, error) {
	if back >= uint64(len(d.blocks)) {
		return content.ID{}, errNotLocal
	}
	return d.blocks[len(d.blocks)-1-int(back)], nil
}

// span reads a span that stands behind another in a commit of a time. It uses the
// memory of the usages that it finds there.
func (c *cursor) span(s *Span, last SpanRef, at time.Time, blocks locals) {
	flags := c.byte("span flags")
	if flags >= spanFollowed<<1 {
		c.fail("unknown span flags")
	}
	s.Ref = c.placeOf(flags, last)
	if flags&spanFollowed == 0 && follows(s.Ref, last) {
		c.fail("span spells out the place that it follows from")
	}
	if flags&spanInSet != 0 {
		s.Set = someID[SpanSetID](c, "span set")
	}
	const leastUsage = 4 // bytes of the shortest usage, a part
	n := c.uint("usages")
	if n == 0 || n > uint64(len(c.rest))/leastUsage {
		c.fail("impossible number of usages")
		return
	}
	if uint64(cap(s.Usages)) < n {
		s.Usages = make([]Usage, n)
	}
	s.Usages = s.Usages[:n]
	for i := range s.Usages {
		c.usage(&s.Usages[i], i, at, blocks)
	}
}

// placeOf reads the place of a span, which a flag says follows from the one before.
func (c *cursor) placeOf(flags byte, last SpanRef) (ref SpanRef) {
	if flags&spanFollowed != 0 {
		ref = SpanRef{Run: last.Run, Seq: last.Seq + 1}
		if last.Seq == 0 || ref.Seq == 0 {
			c.fail("span follows none")
		}
	} else if ref = c.ref("span"); ref.Seq == 0 {
		c.fail("span without a place")
	}
	return ref
}

// usage reads a usage, one of several of a span.
func (c *cursor) usage(u *Usage, i int, at time.Time, blocks locals) {
	*u = Usage{}
	kind := c.byte("usage kind")
	u.Kind, u.Piece = UsageKind(kind&0xf), Piece(kind>>4)
	if u.Piece > lastPiece || u.Piece != 0 && u.Kind != MessageUsage && u.Kind != PartUsage {
		c.fail("unknown kind of usage")
	}
	flags := Present(c.uint("usage flags"))
	if !(flags &^ usageLocal).Possible(u.Kind) {
		c.fail("impossible usage flags")
	}
	if flags&usageLocal == 0 {
		u.Content = c.contentID("content id")
	} else if back := c.uint("local block"); c.err == nil {
		u.Content, c.err = blocks.local(i, back)
	}
	switch u.Kind {
	case MessageUsage:
		if number := c.byte("role"); number == 0 {
			u.Role = c.string("role")
		} else if role, ok := RoleOf(int(number)); ok {
			u.Role = role
		} else if c.err == nil {
			c.err = fmt.Errorf("%w: role %d", ErrUnknownVersion, number)
		}
	case DocumentUsage:
		u.Document, u.Revision = c.string("document"), c.uint("revision")
	case AssetUsage:
		u.Filename = c.string("filename")
	case PartUsage:
	default:
		c.fail("unknown kind of usage")
	}
	u.CreatedAt = time.UnixMilli(at.UnixMilli() + c.int("created")).UTC()
	c.announced(u, flags, blocks)
}

// announced reads the fields that the flags of a usage announce.
func (c *cursor) announced(u *Usage, flags Present, blocks locals) {
	u.Opaque = flags&IsOpaque != 0
	if flags&HasSource != 0 {
		u.SourceID = c.someString("source id")
	}
	if flags&HasMetadata != 0 {
		u.Metadata = c.bytes("metadata")
	}
	if flags&HasBy != 0 {
		u.By = c.attribution()
	}
	if flags&HasForm != 0 {
		u.Form = c.named("form", blocks)
	}
	if flags&HasName != 0 {
		u.Name = c.someString("name")
	}
	if flags&HasOrigin != 0 {
		o := c.blockOrigin()
		u.Origin = &o
	}
	if flags&HasType != 0 {
		if u.Type = c.mediaType(); u.Type == "" {
			c.fail("media type is announced but empty")
		}
	}
	if flags&HasUnique != 0 {
		u.Lookup = 1
	}
	if flags&HasVersion != 0 {
		if u.Lookup = c.uint("version"); u.Lookup < 2 {
			c.fail("impossible version")
		}
	}
	if flags&HasExtras != 0 {
		c.extras(u)
	}
	if flags&HasMetadataContent != 0 {
		u.MetadataContent = c.named("metadata", blocks)
	}
}

// named reads content that a usage names beside its own.
func (c *cursor) named(what string, blocks locals) (id content.ID) {
	if back := c.uint(what); back == 0 {
		id = c.contentID(what)
	} else if c.err == nil {
		id, c.err = blocks.aside(back - 1)
	}
	if c.err == nil && id.IsZero() {
		c.fail(what + " is announced but absent")
	}
	return id
}

func (c *cursor) extras(u *Usage) {
	n := c.uint("extras")
	if n == 0 || n > MostExtras || n > uint64(len(c.rest)) {
		c.fail("impossible number of extras")
		return
	}
	u.Extras = make([][]byte, n)
	size := 0
	for i := range u.Extras {
		u.Extras[i] = c.bytes("extra")
		size += len(u.Extras[i])
	}
	if size > MostExtraBytes {
		c.fail("extras are too large")
	}
}

func (d *Decoder) tip(c *cursor) *Tip {
	t := &Tip{Context: readID[ContextID](c, "context id")}
	switch form := c.byte("tip form"); {
	case form == 0:
		if t.Span = c.ref("tip"); d.last.Seq != 0 && t.Span == d.last {
			c.fail("tip spells out the span that it follows")
		}
	case form == 1 && d.last.Seq != 0:
		t.Span = d.last
	default:
		c.fail("tip follows no span")
	}
	return t
}
