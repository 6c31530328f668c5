package remote

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/varint"
	"github.com/lineage-store/lineage/structure"
)

// ErrMalformed is returned when the other side sends bytes that the protocol does not allow.
var ErrMalformed = errors.New("malformed message")

// wire writes values into a message, or reads them from one. One walker for each type lists its fields for both
// directions. The first error is kept.
type wire struct {
	b       []byte // bytes written so far, or left to read
	reading bool
	err     error
}

var _ structure.Fields = (*wire)(nil)

func (w *wire) fail(what string) {
	if w.err == nil {
		w.err = fmt.Errorf("%w: %s", ErrMalformed, what)
	}
	if w.reading {
		w.b = nil
	}
}

// end returns the first error. Unread bytes are an error.
func (w *wire) end() error {
	if w.reading && w.err == nil && len(w.b) > 0 {
		w.fail(fmt.Sprintf("%d bytes too many", len(w.b)))
	}
	return w.err
}

func (w *wire) take(n uint64, what string) []byte {
	if n > uint64(len(w.b)) {
		w.fail(what + " is cut short")
		return nil
	}
	b := w.b[:n:n]
	w.b = w.b[n:]
	return b
}

// fixed writes or reads len(b) bytes.
func (w *wire) fixed(name string, b []byte) {
	if w.reading {
		copy(b, w.take(uint64(len(b)), name))
	} else {
		w.b = append(w.b, b...)
	}
}

// Uint implements structure.Fields.
func (w *wire) Uint(name string, v *uint64) {
	if !w.reading {
		w.b = binary.AppendUvarint(w.b, *v)
		return
	}
	n := 0
	if *v, n = varint.Minimal(w.b); n == 0 {
		w.fail(name + " is not a number")
		return
	}
	w.b = w.b[n:]
}

type integers interface {
	~int | ~int8 | ~int32 | ~int64 | ~uint8 | ~uint32
}

// integer writes or reads an integer, which is signed on the wire.
func integer[T integers](w *wire, name string, v *T) {
	u := uint64(int64(*v)<<1) ^ uint64(int64(*v)>>63)
	w.Uint(name, &u)
	if w.reading {
		n := int64(u>>1) ^ -int64(u&1)
		if *v = T(n); int64(*v) != n {
			*v = 0
			w.fail(name + " is out of range")
		}
	}
}

// ID implements structure.Fields.
func (w *wire) ID(name string, _ structure.Kind, id *[16]byte) { w.fixed(name, id[:]) }

// id writes or reads an id of any kind.
func id[T ~[16]byte](w *wire, name string, v *T) {
	b := [16]byte(*v)
	w.fixed(name, b[:])
	*v = T(b)
}

// Content implements structure.Fields.
func (w *wire) Content(name string, id *content.ID) { w.fixed(name, id[:]) }

// Ref implements structure.Fields. Unlike on disk, a ref without a place keeps its run, because it is up to the
// engine to refuse bad arguments.
func (w *wire) Ref(name string, ref *structure.SpanRef) {
	w.Uint(name, &ref.Seq)
	if present(w, name, ref.Seq != 0 || !ref.Run.IsZero()) {
		id(w, name, &ref.Run)
	}
}

// data writes or reads bytes. Bytes that are read share the memory of the message.
func (w *wire) data(name string, b *[]byte) {
	n := uint64(len(*b))
	w.Uint(name, &n)
	if w.reading {
		*b = w.take(n, name)
	} else {
		w.b = append(w.b, *b...)
	}
}

// Text implements structure.Fields.
func (w *wire) Text(name string, s *string) {
	n := uint64(len(*s))
	w.Uint(name, &n)
	if w.reading {
		*s = string(w.take(n, name))
	} else {
		w.b = append(w.b, *s...)
	}
}

// present writes or reads whether an optional value is present.
func present(w *wire, name string, has bool) bool {
	w.Flag(name, &has)
	return has && w.err == nil
}

// OptionalText implements structure.Fields.
func (w *wire) OptionalText(name string, s **string) {
	if !present(w, name, *s != nil) {
		*s = nil
		return
	}
	if w.reading {
		*s = new(string)
	}
	w.Text(name, *s)
}

// Optional implements structure.Fields. Bytes that are read are copied.
func (w *wire) Optional(name string, b *[]byte) {
	if !present(w, name, *b != nil) {
		*b = nil
		return
	}
	if w.data(name, b); w.reading {
		*b = append([]byte{}, *b...)
	}
}

// Small implements structure.Fields.
func (w *wire) Small(name string, v *uint8) { integer(w, name, v) }

// Flag implements structure.Fields.
func (w *wire) Flag(name string, v *bool) {
	if !w.reading {
		var b byte
		if *v {
			b = 1
		}
		w.b = append(w.b, b)
		return
	}
	b := w.take(1, name)
	if *v = len(b) == 1 && b[0] == 1; len(b) == 1 && b[0] > 1 {
		w.fail(name + " is neither 0 nor 1")
	}
}

// Time implements structure.Fields, with the precision of stored records.
func (w *wire) Time(name string, t *time.Time) {
	ms := t.UnixMilli()
	if integer(w, name, &ms); w.reading {
		*t = time.UnixMilli(ms).UTC()
	}
}

// instant writes or reads a time with full precision.
func (w *wire) instant(name string, t *time.Time) {
	s, ns := t.Unix(), t.Nanosecond()
	integer(w, name, &s)
	if integer(w, name, &ns); w.reading {
		if ns < 0 || ns >= int(time.Second) {
			w.fail(name + " is not a time")
			return
		}
		*t = time.Unix(s, int64(ns)).UTC()
	}
}

// Count implements structure.Fields.
func (w *wire) Count(name string, given, least int) int {
	n := uint64(given)
	if w.Uint(name, &n); w.reading && n > uint64(len(w.b)/max(least, 1)) {
		w.fail(name + " is longer than the message")
		return 0
	}
	return int(n)
}

// Refuse implements structure.Fields.
func (w *wire) Refuse(why string) { w.fail(why) }

// Failed implements structure.Fields.
func (w *wire) Failed() bool { return w.err != nil }

// list writes or reads a list of elements of at least so many bytes each.
func list[E any](w *wire, name string, all *[]E, least int, element func(*wire, *E)) {
	n := w.Count(name, len(*all), least)
	if w.reading {
		*all = nil
		if n > 0 {
			*all = make([]E, 0, min(n, 4096))
		}
		for i := 0; i < n && w.err == nil; i++ {
			var e E
			element(w, &e)
			*all = append(*all, e)
		}
		return
	}
	for i := range *all {
		element(w, &(*all)[i])
	}
}

// record writes or reads a plain record (see structure.Walk).
func record[T any, R interface {
	*T
	structure.Record
}](w *wire, r **T) {
	if w.reading {
		*r = new(T)
	}
	walkRecord(w, R(*r))
}

func walkRecord(w *wire, r structure.Record) {
	if !structure.Walk(r, w) {
		w.fail(r.Kind().String() + " is not a plain record")
	}
}

// optionalRecord writes or reads a plain record that may be nil.
func optionalRecord[T any, R interface {
	*T
	structure.Record
}](w *wire, name string, r **T) {
	if present(w, name, *r != nil) {
		record[T, R](w, r)
	} else {
		*r = nil
	}
}
