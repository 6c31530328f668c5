package structure

import (
	"bytes"
	"fmt"
	"sync"
	"time"

	"github.com/lineage-store/lineage/content"
)

// MarshalRecord returns the binary form of a single plain record: see Walk.
func MarshalRecord(r Record) ([]byte, error) { return AppendRecord(nil, r) }

// AppendRecord appends the output of MarshalRecord to dst.
func AppendRecord(dst []byte, r Record) ([]byte, error) {
	a := appenders.Get().(*appender)
	defer appenders.Put(a)
	return a.record(dst, r)
}

// UnmarshalRecord is the inverse of MarshalRecord. The record shares memory with b.
func UnmarshalRecord(kind Kind, b []byte) (Record, error) {
	c := readers.Get().(*decoder)
	defer readers.Put(c)
	*c = decoder{rest: b}
	r := c.plain(kind)
	err := c.end()
	*c = decoder{}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Equal reports whether two plain records have the same binary form.
func Equal(a, b Record) bool {
	x, err := MarshalRecord(a)
	y, errB := MarshalRecord(b)
	return err == nil && errB == nil && a.Kind() == b.Kind() && bytes.Equal(x, y)
}

// Own gives a plain record its own memory, and times of the stored precision, as if it
// had been encoded and decoded.
func Own(r Record) { Walk(r, owner{}) }

// Visitors are passed as interfaces and would otherwise be allocated each time.
var (
	appenders = sync.Pool{New: func() any { return new(appender) }}
	readers   = sync.Pool{New: func() any { return new(decoder) }}
)

// appender encodes the fields that it visits.
type appender struct {
	dst []byte
	err error
}

func (a *appender) record(dst []byte, r Record) ([]byte, error) {
	if r == nil {
		return nil, fmt.Errorf("nil record: %w", ErrIncomplete)
	}
	a.dst, a.err = dst, nil
	if !Walk(r, a) {
		a.err = ErrIncomplete
	}
	dst, err := a.dst, a.err
	a.dst = nil
	if err != nil {
		return nil, fmt.Errorf("%v: %w", r.Kind(), err)
	}
	return dst, nil
}

func (a *appender) ID(_ string, _ Kind, id *[16]byte) { a.dst = append(a.dst, id[:]...) }
func (a *appender) Content(_ string, id *content.ID)  { a.dst = append(a.dst, id[:]...) }
func (a *appender) Text(_ string, s *string)          { a.dst = appendString(a.dst, *s) }
func (a *appender) OptionalText(_ string, s **string) { a.dst = appendOptionalString(a.dst, *s) }
func (a *appender) Optional(_ string, b *[]byte)      { a.dst = appendOptional(a.dst, *b) }
func (a *appender) Uint(_ string, v *uint64)          { a.dst = appendUint(a.dst, *v) }
func (a *appender) Small(_ string, v *uint8)          { a.dst = append(a.dst, *v) }
func (a *appender) Time(_ string, t *time.Time)       { a.dst = appendTime(a.dst, *t) }

func (a *appender) Flag(_ string, v *bool) {
	b := byte(0)
	if *v {
		b = 1
	}
	a.dst = append(a.dst, b)
}

func (a *appender) Ref(name string, ref *SpanRef) {
	if err := checkRef(*ref); err != nil && a.err == nil {
		a.err = fmt.Errorf("%s: %w", name, err)
	}
	a.dst = appendRef(a.dst, *ref)
}

func (a *appender) Count(_ string, given, _ int) int {
	a.dst = appendUint(a.dst, uint64(given))
	return given
}

func (a *appender) Refuse(why string) {
	if a.err == nil {
		a.err = fmt.Errorf("%s: %w", why, ErrIncomplete)
	}
}

func (a *appender) Failed() bool { return a.err != nil }

// checkRef refuses a run without a place: it would be decoded as the empty position.
func checkRef(r SpanRef) error {
	if r.Seq == 0 && !r.Run.IsZero() {
		return fmt.Errorf("no place in run %v: %w", r.Run, ErrIncomplete)
	}
	return nil
}

// plain decodes a plain record.
func (c *decoder) plain(kind Kind) Record {
	r := NewPlain(kind)
	if r == nil {
		if c.err == nil {
			c.err = fmt.Errorf("%w: %v", ErrUnknownVersion, kind)
		}
		return nil
	}
	Walk(r, c)
	return r
}

func (c *decoder) ID(name string, _ Kind, id *[16]byte) { copy(id[:], c.take(uint64(len(id)), name)) }
func (c *decoder) Ref(name string, ref *SpanRef)        { *ref = c.ref(name) }
func (c *decoder) Content(name string, id *content.ID)  { *id = c.contentID(name) }
func (c *decoder) Text(name string, s *string)          { *s = c.string(name) }
func (c *decoder) OptionalText(name string, s **string) { *s = c.optionalString(name) }
func (c *decoder) Optional(name string, b *[]byte)      { *b = c.optional(name) }
func (c *decoder) Uint(name string, v *uint64)          { *v = c.uint(name) }
func (c *decoder) Small(name string, v *uint8)          { *v = c.byte(name) }
func (c *decoder) Time(name string, t *time.Time)       { *t = c.time(name) }

func (c *decoder) Flag(name string, v *bool) {
	b := c.byte(name)
	if *v = b == 1; b > 1 {
		c.fail(name + " is neither set nor not")
	}
}

func (c *decoder) Count(name string, _, least int) int {
	n := c.uint(name)
	if n > uint64(len(c.rest)/least) {
		c.fail(name + " are cut short")
		return 0
	}
	return int(n)
}

func (c *decoder) Refuse(why string) { c.fail(why) }
func (c *decoder) Failed() bool      { return c.err != nil }

// owner gives fields their own memory.
type owner struct{}

func (owner) ID(string, Kind, *[16]byte)        {}
func (owner) Ref(string, *SpanRef)              {}
func (owner) Content(string, *content.ID)       {}
func (owner) Text(_ string, s *string)          {}
func (owner) OptionalText(_ string, s **string) { *s = cloneText(*s) }
func (owner) Optional(_ string, b *[]byte)      { *b = bytes.Clone(*b) }
func (owner) Uint(string, *uint64)              {}
func (owner) Small(string, *uint8)              {}
func (owner) Time(_ string, t *time.Time)       { *t = time.UnixMilli(t.UnixMilli()).UTC() }
func (owner) Flag(string, *bool)                {}
func (owner) Count(_ string, given, _ int) int  { return given }
func (owner) Refuse(string)                     {}
func (owner) Failed() bool                      { return false }

func appendRef(dst []byte, r SpanRef) []byte {
	dst = appendUint(dst, r.Seq)
	if r.Seq != 0 {
		dst = append(dst, r.Run[:]...)
	}
	return dst
}

func (c *decoder) ref(what string) SpanRef {
	seq := c.uint(what)
	if seq == 0 {
		return SpanRef{}
	}
	return SpanRef{Seq: seq, Run: readID[RunID](c, what)}
}
