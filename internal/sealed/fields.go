package sealed

import (
	"encoding/binary"

	"github.com/lineage-store/lineage/internal/varint"
)

// A layout is the fields of a value as they are stored, each two bytes: its form, and its kind or its
// size. An id that no dictionary has is bytes.

// columnsOf reports for each column of a layout whether it has texts.
func columnsOf(dst []bool, layout []byte) []bool {
	for ; len(layout) > 0; layout = layout[2:] {
		switch Form(layout[0]) {
		case Rest, Text, Optional:
			dst = append(dst, true)
		case Ref:
			dst = append(dst, false, false)
		case Bytes:
			for n := int(layout[1]); n > 0; n -= 8 {
				dst = append(dst, false)
			}
		default:
			dst = append(dst, false)
		}
	}
	return dst
}

// valid reports whether bytes are a layout, given the number of kinds of the table.
func valid(layout []byte, kinds int) bool {
	if len(layout)%2 != 0 {
		return false
	}
	for ; len(layout) > 0; layout = layout[2:] {
		f := Form(layout[0])
		if f >= forms || (f == ID || f == Ref) && int(layout[1]) >= kinds || f == Bytes && layout[1] == 0 {
			return false
		}
	}
	return true
}

// cutter cuts values into cells.
type cutter struct {
	layout []byte
	cells  []cell
	fields []Field
}

// cut sets the layout and the cells of a value. Bytes that are not the fields of the shape are a cell as they are.
func (c *cutter) cut(shape Shape, in *dictionaries, key, value []byte) error {
	c.layout, c.cells, c.fields = c.layout[:0], c.cells[:0], c.fields[:0]
	if len(value) == 0 {
		return nil
	}
	c.fields = shape.Fields(c.fields, key, value)
	rest, err := c.all(in, value)
	if err == nil && len(rest) > 0 {
		c.put(Rest, 0, cell{text: rest, isText: true})
	}
	if len(c.cells) > maxColumns {
		c.layout, c.cells = c.layout[:0], c.cells[:0]
		c.put(Rest, 0, cell{text: value, isText: true})
	}
	return err
}

func (c *cutter) put(f Form, kind int, cells ...cell) {
	c.layout = append(c.layout, byte(f), byte(kind))
	c.cells = append(c.cells, cells...)
}

// all cuts fields until one is not there, and returns the rest.
func (c *cutter) all(in *dictionaries, value []byte) (rest []byte, err error) {
	for _, f := range c.fields {
		size := 0 // of the field, if it is there
		switch f.Form {
		case Number, Time:
			size = c.number(f.Form, value)
		case ID:
			size, err = c.id(in, f.Kind, value)
		case Ref:
			size, err = c.ref(in, f.Kind, value)
		case Bytes:
			if 1 <= f.Size && f.Size <= min(len(value), 255) {
				size = f.Size
				c.bytes(value[:size])
			}
		case Text:
			size = c.text(value)
		case Optional:
			size = c.optional(value)
		}
		if err != nil || size == 0 {
			return value, err
		}
		value = value[size:]
	}
	return value, nil
}

// The following cut the field that a value begins with, and return its size; 0 if it is not there.

func (c *cutter) number(f Form, value []byte) (size int) {
	x, size := varint.Minimal(value)
	if size == 0 {
		return 0
	}
	if f == Time {
		x = uint64(varint.Unzigzag(x))
	}
	c.put(f, 0, cell{number: x})
	return size
}

func (c *cutter) id(in *dictionaries, kind int, value []byte) (size int, err error) {
	if len(value) < idSize {
		return 0, nil
	}
	n, ok, err := numberOf(in, kind, value[:idSize])
	if err != nil {
		return 0, err
	}
	if ok {
		c.put(ID, kind, cell{number: n})
	} else {
		c.bytes(value[:idSize])
	}
	return idSize, nil
}

func (c *cutter) ref(in *dictionaries, kind int, value []byte) (size int, err error) {
	x, size := varint.Minimal(value)
	if size == 0 {
		return 0, nil
	}
	if x == 0 { // without an id
		c.put(Ref, kind, cell{}, cell{})
		return size, nil
	}
	if len(value) < size+idSize {
		return 0, nil
	}
	id := value[size:][:idSize]
	n, ok, err := numberOf(in, kind, id)
	if err != nil {
		return 0, err
	}
	if ok {
		c.put(Ref, kind, cell{number: x}, cell{number: n})
	} else {
		c.put(Number, 0, cell{number: x})
		c.bytes(id)
	}
	return size + idSize, nil
}

func (c *cutter) text(value []byte) (size int) {
	x, n := varint.Minimal(value)
	if n == 0 || x > uint64(len(value)-n) {
		return 0
	}
	c.put(Text, 0, cell{text: value[n:][:x], isText: true})
	return n + int(x)
}

func (c *cutter) optional(value []byte) (size int) {
	x, n := varint.Minimal(value) // 0 for none, otherwise the size of the text plus 1
	if n == 0 {
		return 0
	}
	if x == 0 {
		c.put(Optional, 0, cell{isText: true, absent: true})
		return n
	}
	if x--; x > uint64(len(value)-n) {
		return 0
	}
	c.put(Optional, 0, cell{text: value[n:][:x], isText: true, number: 1})
	return n + int(x)
}

// bytes adds bytes as numbers of up to eight.
func (c *cutter) bytes(b []byte) {
	c.put(Bytes, len(b))
	for ; len(b) > 8; b = b[8:] {
		c.cells = append(c.cells, cell{number: binary.BigEndian.Uint64(b)})
	}
	c.cells = append(c.cells, cell{number: readNumber(b)})
}

// numberOf returns the number of an id in a column: 0 for the zero id, otherwise its place plus 1.
func numberOf(in *dictionaries, kind int, id []byte) (n uint64, ok bool, err error) {
	key := (*[idSize]byte)(id)
	if *key == [idSize]byte{} {
		return 0, true, nil
	}
	n, ok, err = in.rank(kind, key)
	return n + 1, ok, err
}

// join appends the value of a row.
func join(dst, layout []byte, in *dictionaries, g *groupReader, row int, heap []byte) (_ []byte, err error) {
	column, start := 0, len(dst)
	next := func() uint64 {
		column++
		return g.number(column-1, row)
	}
	id := func(kind byte, n uint64) error {
		if n == 0 {
			dst = append(dst, make([]byte, idSize)...)
			return nil
		}
		id, err := in.id(int(kind), n-1)
		dst = append(dst, id[:]...)
		return err
	}
	for ; len(layout) > 0; layout = layout[2:] {
		switch form := Form(layout[0]); form {
		case Number:
			dst = binary.AppendUvarint(dst, next())
		case Time:
			dst = binary.AppendVarint(dst, int64(next()))
		case ID:
			if err := id(layout[1], next()); err != nil {
				return nil, err
			}
		case Ref:
			at, n := next(), next()
			if dst = binary.AppendUvarint(dst, at); at != 0 {
				if err := id(layout[1], n); err != nil {
					return nil, err
				}
			}
		case Bytes:
			for n := int(layout[1]); n > 0; n -= 8 {
				dst = appendNumber(dst, next(), min(n, 8))
			}
		case Text, Optional, Rest:
			n := next()
			if form == Optional {
				if n == 0 {
					dst = append(dst, 0)
					continue
				}
				n--
			}
			text, err := g.text(column-1, n, heap)
			if err != nil {
				return nil, err
			}
			switch form {
			case Text:
				dst = binary.AppendUvarint(dst, uint64(len(text)))
			case Optional:
				dst = binary.AppendUvarint(dst, uint64(len(text))+1)
			}
			if dst = append(dst, text...); len(dst)-start > maxBlock { // its texts cannot come from one heap
				return nil, ErrDamaged
			}
		}
	}
	return dst, nil
}
