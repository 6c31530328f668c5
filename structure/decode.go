package structure

import (
	"fmt"
	"math"
	"time"

	"github.com/lineage-store/lineage/content"
)

// Decoder decodes a commit record by record. Its results share memory with the
// payload, which must not change afterwards.
//
// It refuses every form that the encoder does not write, with two exceptions for
// other encoders: a name that has a number may be spelled out, and content that
// the commit named before may be named again, or by any of its earlier names.
type Decoder struct {
	// Time is the commit's time.
	Time time.Time

	c     decoder
	size  int
	left  uint64 // how many records and usages may follow
	names []content.ID
	last  SpanRef
	plain decoder // of the current record
}

// NewDecoder starts decoding a payload.
func NewDecoder(payload []byte) (*Decoder, error) {
	d := &Decoder{}
	return d, d.Reset(payload)
}

// Reset starts decoding another payload and keeps the decoder's buffers.
func (d *Decoder) Reset(payload []byte) error {
	*d = Decoder{c: decoder{rest: payload}, size: len(payload), left: math.MaxUint64, names: d.names[:0]}
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

// More reports whether there are more records.
func (d *Decoder) More() bool { return len(d.c.rest) > 0 && d.c.err == nil }

// Next returns the next record and its offset in the payload. It must be called
// only if More returns true. After an error nothing more is read.
func (d *Decoder) Next() (offset int, r Record, err error) {
	offset = d.size - len(d.c.rest)
	kind, body := d.c.record()
	if d.c.err != nil {
		return offset, nil, d.c.err
	}
	if d.left <= 1 {
		d.c.fail("too many records and usages")
		return offset, nil, d.c.err
	}
	d.left--
	c := decoder{rest: body}
	switch kind {
	case KindBlock:
		b := &Block{}
		c.block(b)
		d.names = append(d.names, b.ID)
		r = b
	case KindChunk:
		r = &Chunk{Key: content.KeyOf(body), Bytes: body}
		c.rest = nil
	case KindSpan:
		s := &Span{}
		in := spanReader{decoder: c, names: d, time: d.Time, most: d.left}
		in.span(s, d.last)
		d.left -= uint64(len(s.Usages))
		d.last, c = s.Ref, in.decoder
		r = s
	case KindTip:
		r = d.tip(&c)
	default:
		d.plain = c
		r = d.plain.plain(kind)
		c, d.plain = d.plain, decoder{}
	}
	if err := d.ends(&c, kind, offset); err != nil {
		return offset, nil, err
	}
	return offset, r, nil
}

// ends checks that a record was read to its end without an error. Otherwise
// nothing more is read.
func (d *Decoder) ends(c *decoder, kind Kind, offset int) error {
	if err := c.end(); err != nil {
		d.c.rest, d.c.err = nil, fmt.Errorf("%v at byte %d: %w", kind, offset, err)
	}
	return d.c.err
}

// DecodeCommit decodes a whole commit; Number is not set.
func DecodeCommit(payload []byte) (*Commit, error) { return DecodeSmallCommit(payload, math.MaxUint64) }

// DecodeSmallCommit is like DecodeCommit, for payloads of others, which may have millions of records or usages in little. With as
// many as most it is malformed.
func DecodeSmallCommit(payload []byte, most uint64) (*Commit, error) {
	d, err := NewDecoder(payload)
	if err != nil {
		return nil, err
	}
	d.left = most
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

// RecordSize returns the size of the record at the start of b, of which b may
// contain only the beginning, or 0 if unknown. It does not check the record.
func RecordSize(b []byte) int {
	c := decoder{rest: b}
	c.byte("kind")
	n := c.uint("length")
	if c.err != nil || n > 1<<40 {
		return 0
	}
	return len(b) - len(c.rest) + int(n)
}

// DecodeObject decodes b as a block or chunk record. The id or key is computed
// from the bytes, except for the id of a chunked block, which is in the record.
func DecodeObject(b []byte) (Record, error) {
	outer := decoder{rest: b}
	kind, body := outer.record()
	if err := outer.end(); err != nil {
		return nil, err
	}
	switch kind {
	case KindBlock:
		c, block := decoder{rest: body}, &Block{}
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

func (c *decoder) record() (Kind, []byte) {
	kind := Kind(c.byte("record kind"))
	return kind, c.bytes("record")
}

func (d *Decoder) tip(c *decoder) *Tip {
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

func (d *Decoder) state(ids []byte) {
	for ; len(ids) > 0; ids = ids[len(content.ID{}):] {
		d.names = append(d.names, content.ID(ids))
	}
}

func (d *Decoder) local(_ int, back uint64) (content.ID, error) { return d.aside(back) }

func (d *Decoder) aside(back uint64) (content.ID, error) {
	if back >= uint64(len(d.names)) {
		return content.ID{}, errNotNamed
	}
	return d.names[len(d.names)-1-int(back)], nil
}
