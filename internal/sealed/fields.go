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

// cut sets the layout and the cells of a value. What does not have the fields that its owner says is
// kept as it is.
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
		switch f.Form {
		case Number, Time:
			x, n := varint.Minimal(value)
			if n == 0 {
				return value, nil
			}
			if value = value[n:]; f.Form == Time {
				x = uint64(varint.Unzigzag(x))
			}
			c.put(f.Form, 0, cell{number: x})
		case ID:
			if len(value) < idSize {
				return value, nil
			}
			if err := c.id(in, f.Kind, value[:idSize]); err != nil {
				return nil, err
			}
			value = value[idSize:]
		case Ref:
			x, n := varint.Minimal(value)
			if n == 0 || x != 0 && len(value) < n+idSize {
				return value, nil
			}
			if value = value[n:]; x == 0 {
				c.put(Ref, f.Kind, cell{}, cell{})
				continue
			}
			at, ok, err := number(in, f.Kind, value[:idSize])
			if err != nil {
				return nil, err
			}
			if ok {
				c.put(Ref, f.Kind, cell{number: x}, cell{number: at})
			} else {
				c.put(Number, 0, cell{number: x})
				c.bytes(value[:idSize])
			}
			value = value[idSize:]
		case Bytes:
			if len(value) < f.Size || f.Size < 1 || f.Size > 255 {
				return value, nil
			}
			c.bytes(value[:f.Size])
			value = value[f.Size:]
		case Text, Optional:
			x, n := varint.Minimal(value)
			if n == 0 {
				return value, nil
			}
			if f.Form == Optional {
				if x == 0 {
					c.put(Optional, 0, cell{isText: true, absent: true})
					value = value[n:]
					continue
				}
				x--
			}
			if x > uint64(len(value)-n) {
				return value, nil
			}
			t := cell{text: value[n:][:x], isText: true}
			if f.Form == Optional {
				t.number = 1
			}
			c.put(f.Form, 0, t)
			value = value[n+int(x):]
		default:
			return value, nil
		}
	}
	return value, nil
}

// number returns the number of an id in a column: 0 for the zero id, otherwise its place plus 1.
func number(in *dictionaries, kind int, id []byte) (n uint64, ok bool, err error) {
	key := (*[idSize]byte)(id)
	if *key == [idSize]byte{} {
		return 0, true, nil
	}
	n, ok, err = in.rank(kind, key)
	return n + 1, ok, err
}

func (c *cutter) id(in *dictionaries, kind int, id []byte) error {
	n, ok, err := number(in, kind, id)
	if err == nil && ok {
		c.put(ID, kind, cell{number: n})
	} else {
		c.bytes(id)
	}
	return err
}

func (c *cutter) bytes(b []byte) {
	c.put(Bytes, len(b))
	for ; len(b) > 8; b = b[8:] {
		c.cells = append(c.cells, cell{number: binary.BigEndian.Uint64(b)})
	}
	c.cells = append(c.cells, cell{number: readNumber(b)})
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
	text := func(n uint64) ([]byte, error) { return g.text(column-1, n, heap) }
	for ; len(layout) > 0; layout = layout[2:] {
		switch Form(layout[0]) {
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
			if Form(layout[0]) == Optional {
				if n == 0 {
					dst = append(dst, 0)
					continue
				}
				n--
			}
			t, err := text(n)
			if err != nil {
				return nil, err
			}
			switch Form(layout[0]) {
			case Text:
				dst = binary.AppendUvarint(dst, uint64(len(t)))
			case Optional:
				dst = binary.AppendUvarint(dst, uint64(len(t))+1)
			}
			if dst = append(dst, t...); len(dst)-start > maxBlock { // its texts cannot come from one heap
				return nil, ErrDamaged
			}
		}
	}
	return dst, nil
}
