// Package columns codes the records of a chapter field by field. Each kind of field has a column of its own, which
// compresses well; ids and texts are coded apart. Encode and Decode run the same code in the two directions.
package columns

import (
	"encoding/binary"

	"github.com/lineage-store/lineage/internal/varint"
)

// coder encodes or decodes values. The same code does both, so the two cannot differ:
// a decoder passes zeros and gets the encoded values. Values of the same kind are in
// one column, which compresses well.
type coder struct {
	writing bool
	columns [][]byte // output, or remaining input
	bad     bool     // a reader went past the end of a column
}

func newWriter(columns int) *coder { return &coder{writing: true, columns: make([][]byte, columns)} }

// newReader returns a coder that reads the output of finish.
func newReader(b []byte, columns int) *coder {
	c := &coder{columns: make([][]byte, columns)}
	v := varint.Reader{Rest: b}
	sizes := make([]uint64, columns)
	for i := range sizes {
		sizes[i] = v.AtMost(uint64(len(b)))
	}
	for i, n := range sizes {
		if v.Bad || n > uint64(len(v.Rest)) {
			c.bad = true
			return c
		}
		c.columns[i], v.Rest = v.Rest[:n], v.Rest[n:]
	}
	c.bad = v.Bad || len(v.Rest) > 0
	return c
}

// finish returns the size of each column as a varint, and the columns.
func (c *coder) finish() []byte {
	var out []byte
	for _, column := range c.columns {
		out = binary.AppendUvarint(out, uint64(len(column)))
	}
	for _, column := range c.columns {
		out = append(out, column...)
	}
	return out
}

// spent reports whether a reader went past the end.
func (c *coder) spent() bool { return c.bad }

// complete reports whether a reader read everything exactly.
func (c *coder) complete() bool {
	for _, column := range c.columns {
		if len(column) > 0 {
			return false
		}
	}
	return !c.bad
}

// symbol codes a number below 16.
func (c *coder) symbol(column, v int) int {
	b := [1]byte{byte(v)}
	c.raw(column, b[:])
	if b[0] > 15 {
		c.bad = true
		return 0
	}
	return int(b[0])
}

// raw codes bytes unchanged, in place.
func (c *coder) raw(column int, b []byte) {
	at := &c.columns[column]
	switch {
	case c.writing:
		*at = append(*at, b...)
	case len(*at) < len(b):
		c.bad, *at = true, nil
		clear(b)
	default:
		*at = (*at)[copy(b, *at):]
	}
}

// text codes a string as its length in one column and its bytes in another.
func (c *coder) text(lengths, column int, s string) string {
	n := c.number(lengths, uint64(len(s)))
	if c.writing {
		c.columns[column] = append(c.columns[column], s...)
		return s
	}
	if n > uint64(len(c.columns[column])) {
		c.bad = true
		return ""
	}
	b := make([]byte, n)
	c.raw(column, b)
	return string(b)
}

// number codes a number as a varint.
func (c *coder) number(column int, v uint64) uint64 {
	at := &c.columns[column]
	if c.writing {
		*at = binary.AppendUvarint(*at, v)
		return v
	}
	v, n := binary.Uvarint(*at)
	if n <= 0 {
		c.bad, *at = true, nil
		return 0
	}
	*at = (*at)[n:]
	return v
}
