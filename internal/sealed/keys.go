package sealed

import (
	"bytes"
)

// A stored key is the key's first byte and its parts. Bytes are stored as they are. An id is stored
// as a number of as many bytes as the dictionary of its kind needs: twice its number plus 1 if the
// dictionary has it; otherwise twice the number of lesser ids there, and then the id. A key may end
// within an id, which is then not in the dictionary: it sorts as if followed by zeros. So every string
// of bytes has a stored key, and these sort as the keys.
//
// In a tail, the last four bytes of an id come first. Stored are these bytes, and then the number of
// the id as above, with its first twelve bytes if it is not in the dictionary.

// numbers is what stored keys need of the dictionaries.
type numbers interface {
	// rank returns the number of ids of a kind that are less, and whether there is this id.
	rank(kind int, id *[idSize]byte) (n uint64, ok bool, err error)
	// id returns the id with a number.
	id(kind int, n uint64) ([idSize]byte, error)
	// width returns the size of stored numbers.
	width(kind int) int
}

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

// appendStored appends the stored key of a key.
func appendStored(dst []byte, shape Shape, in numbers, key []byte) ([]byte, error) {
	if len(key) == 0 {
		return dst, nil
	}
	dst, rest := append(dst, key[0]), key[1:]
	for _, p := range shape.Parts(key[0]) {
		if p.Size > 0 {
			n := min(p.Size, len(rest))
			dst, rest = append(dst, rest[:n]...), rest[n:]
			continue
		}
		if p.Tail {
			n := min(tailSize, len(rest))
			dst = append(dst, rest[:n]...)
			if n < tailSize {
				return dst, nil
			}
		}
		if len(rest) == 0 || p.Tail && len(rest) == tailSize {
			return dst, nil
		}
		var id [idSize]byte
		given := min(idSize, len(rest))
		if p.Tail {
			copy(id[:idSize-tailSize], rest[tailSize:given])
			copy(id[idSize-tailSize:], rest)
		} else {
			copy(id[:], rest)
		}
		n, ok, err := in.rank(p.Kind, &id)
		if err != nil {
			return dst, err
		}
		if ok = ok && given == idSize; ok {
			dst = appendNumber(dst, 2*n+1, in.width(p.Kind))
		} else {
			dst = appendNumber(dst, 2*n, in.width(p.Kind))
			if p.Tail {
				dst = append(dst, rest[tailSize:given]...)
			} else {
				dst = append(dst, rest[:given]...)
			}
		}
		rest = rest[given:]
	}
	return append(dst, rest...), nil
}

// appendKey appends the key of a stored key.
func appendKey(dst []byte, shape Shape, in numbers, stored []byte) ([]byte, error) {
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
			given := min(idSize-tail, len(rest))
			dst, rest = append(dst, rest[:given]...), rest[given:]
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
