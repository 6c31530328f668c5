package pack

import "encoding/binary"

// idState is what the coding of new ids has learned. Most are UUIDs of version 7
// that one process made: their time goes on, and so does the number below it.
type idState struct {
	kind  [4]prob
	time  number
	below number
	last  [16]byte
}

const (
	idRaw     = iota // any 16 bytes
	idRandom         // version 7
	idCounted        // version 7, and the number below the time goes on
	idDerived        // found when the records are read; until then zero
)

func newIDState() *idState {
	s := new(idState)
	for i := range s.kind {
		s.kind[i] = prob{probStart, probStart}
	}
	s.time.init()
	s.below.init()
	return s
}

// split returns the parts of a UUID of version 7: milliseconds, 12 bits, 62 bits.
func split(id [16]byte) (millis, middle, below uint64, ok bool) {
	hi, lo := binary.BigEndian.Uint64(id[:8]), binary.BigEndian.Uint64(id[8:])
	return hi >> 16, hi & 0xfff, lo & (1<<62 - 1), hi>>12&0xf == 7 && lo>>62 == 2
}

func join(millis, middle, below uint64) (id [16]byte) {
	binary.BigEndian.PutUint64(id[:8], millis<<16|7<<12|middle&0xfff)
	binary.BigEndian.PutUint64(id[8:], 2<<62|below&(1<<62-1))
	return id
}

// ids codes n ids, of which a writer says which are derived.
func (s *idState) ids(c *coder, ids [][16]byte, n int, derived map[int]bool) [][16]byte {
	delta := func(n *number, v, last uint64) uint64 {
		return last + uint64(unzigzag(c.number(n, zigzag(int64(v-last)))))
	}
	for i := range n {
		var id [16]byte
		how := idRaw
		lastMillis, lastMiddle, lastBelow, _ := split(s.last)
		var millis, middle, below uint64
		if c.writing {
			id = ids[i]
			var ok bool
			if derived[i] {
				how = idDerived
			} else if millis, middle, below, ok = split(id); ok {
				how = idRandom
				if d := int64(below - lastBelow); middle == lastMiddle && d > -1<<31 && d < 1<<31 {
					how = idCounted
				}
			}
		}
		switch c.tree(s.kind[:], 2, how) {
		case idRandom:
			millis = delta(&s.time, millis, lastMillis)
			middle, below = c.raw(middle, 12), c.raw(below, 62)
			id = join(millis, middle, below)
			s.last = id
		case idCounted:
			millis, below = delta(&s.time, millis, lastMillis), delta(&s.below, below, lastBelow)
			id = join(millis, lastMiddle, below)
			s.last = id
		case idDerived:
		default:
			for k := range id {
				id[k] = byte(c.raw(uint64(id[k]), 8))
			}
		}
		if !c.writing {
			if c.spent() {
				return ids
			}
			ids = append(ids, id)
		}
	}
	return ids
}
