package sealed

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// A block of ids has for each id its difference to the one before, as a number of 16 bytes. The first
// bytes of all ids come first, then the second bytes, and so on.

// idBlock is the ids of a decoded block, in order.
type idBlock []byte

func (b idBlock) at(i int) *[idSize]byte { return (*[idSize]byte)(b[i*idSize:]) }

// search returns the number of ids that are less, and whether there is this id.
func (b idBlock) search(id *[idSize]byte) (n int, ok bool) {
	low, high := 0, len(b)/idSize
	for low < high {
		mid := (low + high) / 2
		switch bytes.Compare(b.at(mid)[:], id[:]) {
		case 0:
			return mid, true
		case -1:
			low = mid + 1
		default:
			high = mid
		}
	}
	return low, false
}

func encodeIDs(dst []byte, ids idBlock) []byte {
	n := len(ids) / idSize
	start := len(dst)
	dst = append(dst, ids...)
	var high, low uint64
	for i := range n {
		h, l := binary.BigEndian.Uint64(ids[i*idSize:]), binary.BigEndian.Uint64(ids[i*idSize+8:])
		dl, borrow := bits.Sub64(l, low, 0)
		dh, _ := bits.Sub64(h, high, borrow)
		high, low = h, l
		for j := range 8 {
			dst[start+j*n+i] = byte(dh >> (56 - 8*j))
			dst[start+(8+j)*n+i] = byte(dl >> (56 - 8*j))
		}
	}
	return dst
}

func decodeIDs(b []byte) (idBlock, error) {
	if len(b) == 0 || len(b)%idSize != 0 {
		return nil, ErrDamaged
	}
	n := len(b) / idSize
	ids := make(idBlock, len(b))
	var high, low uint64
	for i := range n {
		var dh, dl uint64
		for j := range 8 {
			dh, dl = dh<<8|uint64(b[j*n+i]), dl<<8|uint64(b[(8+j)*n+i])
		}
		var carry uint64
		low, carry = bits.Add64(low, dl, 0)
		high, _ = bits.Add64(high, dh, carry)
		binary.BigEndian.PutUint64(ids[i*idSize:], high)
		binary.BigEndian.PutUint64(ids[i*idSize+8:], low)
		if i > 0 && bytes.Compare(ids.at(i - 1)[:], ids.at(i)[:]) >= 0 {
			return nil, ErrDamaged
		}
	}
	return ids, nil
}
