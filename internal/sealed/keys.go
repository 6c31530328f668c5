package sealed

import "bytes"

// A stored key is the key's first byte and its parts. Bytes are stored as they are. An id is stored
// as a number of as many bytes as the dictionary of its kind needs: twice its number plus 1 if the
// dictionary has it; otherwise twice the number of lesser ids there, and then the id. A key may end
// within an id, which is then not in the dictionary: it sorts as if followed by zeros. So every string
// of bytes has a stored key, and these sort as the keys.
//
// In a tail, the last four bytes of an id come first. Stored are these bytes, and then the number of
// the id as above, with its first twelve bytes if it is not in the dictionary.

// appendNumber appends a number in so many bytes, big-endian.
func appendNumber(dst []byte, n uint64, width int) []byte {
	for i := width - 1; i >= 0; i-- {
		dst = append(dst, byte(n>>(8*i)))
	}
	return dst
}

func readNumber(b []byte) (n uint64) {
	for _, c := range b {
		n = n<<8 | uint64(c)
	}
	return n
}

// widthOf is the size of stored numbers of a dictionary with so many ids.
func widthOf(ids uint64) int {
	width := 1
	for most := 2*ids + 1; most > 0xff; most >>= 8 {
		width++
	}
	return width
}

// Sizes of the columns of stored keys, after the key's first byte.
const (
	restColumn = 0xff // what follows the parts
	textColumn = 0x80 // plus the size of a text
	tailColumn = 0x10 // plus the kind of the id of which these are the last tailSize-tailStart bytes; its number is the next column
)

// tailStart is how many bytes of a tail are stored, so that a search seldom reads ids.
const tailStart = 2

// isTail reports whether the bytes of a column follow from the next one.
func isTail(column byte) bool { return column&^(MaxKinds-1) == tailColumn }

// sizeOf is the size of a column in a stored key; not of restColumn.
func sizeOf(column byte) int {
	switch {
	case isTail(column):
		return tailSize - tailStart
	case column < textColumn:
		return int(column)
	}
	return int(column - textColumn)
}

// appendSize appends the columns of so many bytes.
func appendSize(columns []byte, n int) []byte {
	for ; n > 8; n -= 8 {
		columns = append(columns, 8)
	}
	return append(columns, byte(n))
}

// appendStored appends the stored key of a key, and to columns the sizes of its columns.
func appendStored(dst, columns []byte, shape Shape, in *dictionaries, key []byte) (_, _ []byte, err error) {
	if len(key) == 0 {
		return dst, columns, nil
	}
	dst, rest := append(dst, key[0]), key[1:]
	from := len(columns)
	short := func() ([]byte, []byte, error) { return dst, append(columns[:from], restColumn), nil }
	for _, p := range shape.Parts(key[0]) {
		if p.Size > 0 {
			if len(rest) < p.Size {
				dst = append(dst, rest...)
				return short()
			}
			if dst, rest = append(dst, rest[:p.Size]...), rest[p.Size:]; p.Text {
				columns = append(columns, byte(textColumn+p.Size))
			} else {
				columns = appendSize(columns, p.Size)
			}
			continue
		}
		tail := 0
		if p.Tail {
			tail = min(tailSize, len(rest))
			dst, columns = append(dst, rest[:tail]...), append(columns, tailStart, byte(tailColumn+p.Kind))
		}
		if len(rest) == tail {
			return short()
		}
		var id [idSize]byte
		length := min(idSize, len(rest))
		copy(id[:], rest[tail:length])
		copy(id[idSize-tail:], rest[:tail])
		n, ok, err := in.rank(p.Kind, &id)
		if err != nil {
			return dst, columns, err
		}
		width := in.width(p.Kind)
		columns = append(columns, byte(width))
		if ok && length == idSize {
			dst = appendNumber(dst, 2*n+1, width)
		} else {
			dst = append(appendNumber(dst, 2*n, width), rest[tail:length]...)
			columns = appendSize(columns, idSize-tail)
		}
		if rest = rest[length:]; length < idSize || p.Tail && !ok {
			dst = append(dst, rest...)
			return short()
		}
	}
	if len(rest) > 0 {
		columns = append(columns, restColumn)
	}
	return append(dst, rest...), columns, nil
}

// appendKey appends the key of a stored key.
func appendKey(dst []byte, shape Shape, in *dictionaries, stored []byte) ([]byte, error) {
	if len(stored) == 0 {
		return dst, nil
	}
	dst, rest := append(dst, stored[0]), stored[1:]
	for _, p := range shape.Parts(stored[0]) {
		if p.Size > 0 {
			n := min(p.Size, len(rest))
			dst, rest = append(dst, rest[:n]...), rest[n:]
			continue
		}
		tail := 0
		if p.Tail {
			tail = min(tailSize, len(rest))
			dst, rest = append(dst, rest[:tail]...), rest[tail:]
		}
		width := in.width(p.Kind)
		if len(rest) == 0 {
			return dst, nil
		}
		if len(rest) < width {
			return dst, ErrDamaged
		}
		n := readNumber(rest[:width])
		rest = rest[width:]
		if n%2 == 0 {
			length := min(idSize-tail, len(rest))
			dst, rest = append(dst, rest[:length]...), rest[length:]
			continue
		}
		id, err := in.id(p.Kind, n/2)
		if err != nil {
			return dst, err
		}
		if p.Tail && !bytes.Equal(id[idSize-tailSize:], dst[len(dst)-tailSize:]) {
			return dst, ErrDamaged
		}
		dst = append(dst, id[:idSize-tail]...)
	}
	return append(dst, rest...), nil
}

// stored returns the stored key of a key.
func (r *dictionaries) stored(dst, key []byte) ([]byte, error) {
	var columns [32]byte
	dst, _, err := appendStored(dst, columns[:0], r.shape, r, key)
	return dst, err
}
