package structuretest

import (
	"encoding/binary"
	"iter"
	"runtime"
	"slices"
)

// Inflated yields variants of b in which a length, count or offset at a position is far
// too large: a varint that is inserted or replaces the existing one, or a number of four
// or eight bytes.
func Inflated(b []byte, at int) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		_, size := binary.Uvarint(b[at:])
		for _, v := range []uint64{uint64(len(b)) + 1, 1 << 31, 1 << 32, 1 << 63, 1<<64 - 1} {
			varint := binary.AppendUvarint(nil, v)
			if !yield(slices.Concat(b[:at], varint, b[at+max(size, 0):])) {
				return
			}
			eight := binary.LittleEndian.AppendUint64(nil, v)
			for _, number := range [][]byte{varint, eight[:4], eight} {
				if len(b)-at < len(number) {
					continue
				}
				if !yield(slices.Concat(b[:at], number, b[at+len(number):])) {
					return
				}
			}
		}
	}
}

// Allocated returns the number of bytes that a function allocates, if nothing else runs
// meanwhile.
func Allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
