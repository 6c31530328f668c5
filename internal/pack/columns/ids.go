package columns

import (
	"encoding/binary"

	"github.com/lineage-store/lineage/internal/varint"
	"github.com/lineage-store/lineage/structure"
)

// Codings of ids. Most ids are UUIDs of version 7 from one process, with ascending times
// and an ascending number below.
const (
	idRaw     = iota // 16 bytes
	idRandom         // version 7
	idCounted        // version 7 with an ascending number
	idDerived        // of a thread, from its source id
)

// Columns of the new ids of a chapter.
const (
	columnIDKind = iota
	columnIDTime
	columnIDBelow
	columnIDBytes
	columnIDLength
	columnIDSource
	idColumns
)

// ID is an id that first occurs in a chapter.
type ID struct {
	id     [16]byte
	source string // source id that it is derived from, or empty
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

// codeIDs codes n ids. A reader passes none.
func codeIDs(c *coder, ids []ID, n int) []ID {
	var last [16]byte // the last id of version 7
	delta := func(column int, v, last uint64) uint64 {
		return last + uint64(varint.Unzigzag(c.number(column, varint.Zigzag(int64(v-last)))))
	}
	for i := range n {
		var x ID
		how := idRaw
		lastMillis, lastMiddle, lastBelow, _ := split(last)
		var millis, middle, below uint64
		if c.writing {
			x = ids[i]
			var ok bool
			if x.source != "" {
				how = idDerived
			} else if millis, middle, below, ok = split(x.id); ok {
				how = idRandom
				if d := int64(below - lastBelow); middle == lastMiddle && d > -1<<31 && d < 1<<31 {
					how = idCounted
				}
			}
		}
		switch c.symbol(columnIDKind, how) {
		case idRandom:
			millis = delta(columnIDTime, millis, lastMillis)
			var b [10]byte
			binary.BigEndian.PutUint16(b[:], uint16(middle))
			binary.BigEndian.PutUint64(b[2:], below)
			c.raw(columnIDBytes, b[:])
			x.id = join(millis, uint64(binary.BigEndian.Uint16(b[:])), binary.BigEndian.Uint64(b[2:]))
			last = x.id
		case idCounted:
			millis, below = delta(columnIDTime, millis, lastMillis), delta(columnIDBelow, below, lastBelow)
			x.id = join(millis, lastMiddle, below)
			last = x.id
		case idDerived:
			x.source = c.text(columnIDLength, columnIDSource, x.source)
			x.id = threadOf(x.source)
		case idRaw:
			c.raw(columnIDBytes, x.id[:])
		default:
			c.bad = true
		}
		if !c.writing {
			if c.spent() {
				return ids
			}
			ids = append(ids, x)
		}
	}
	return ids
}

func threadOf(source string) structure.ThreadID {
	return structure.DeriveID[structure.ThreadID]("thread", source)
}
