package index

import "strconv"

const (
	// minMapSize is the least address space to map.
	minMapSize = 16 << 20
	// allocSize is the step by which the file grows.
	allocSize = 256 << 10
)

// mapSize returns the address space that bbolt maps in advance for a file with so
// many bytes in use. It cannot remap while reads are open, and some always are.
func mapSize(used uint64) int {
	size, most := leastMapped64(), uint64(1)<<46
	if strconv.IntSize == 32 {
		size, most = 512<<20, 1<<30
	}
	for size < 2*used && size < most {
		size *= 2
	}
	return int(size)
}
