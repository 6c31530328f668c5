package place

import (
	"encoding/binary"
	"time"
)

// Fields are values with length prefixes, so that different sequences of values have different bytes.
type Fields []byte

// Text appends a text.
func (f *Fields) Text(s string) {
	f.Number(int64(len(s)))
	*f = append(*f, s...)
}

// Bytes appends bytes.
func (f *Fields) Bytes(b []byte) {
	f.Number(int64(len(b)))
	*f = append(*f, b...)
}

// Number appends a number.
func (f *Fields) Number(n int64) { *f = binary.AppendVarint(*f, n) }

// Time appends a time with the precision that is stored. The zero time differs from all others.
func (f *Fields) Time(t time.Time) {
	if t.IsZero() {
		f.Number(-1 << 62)
		return
	}
	f.Number(t.UnixMilli())
}
