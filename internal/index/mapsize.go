package index

import "strconv"

const (
	// leastMapSize is what an index asks for at least.
	leastMapSize = 16 << 20
	// allocSize is by how much the file grows at a time.
	allocSize = 256 << 10
)

// mapSize returns how much address space bbolt maps in advance for a file of
// which so many bytes are in use. It may not remap while reads are open, and some
// always are.
func mapSize(used uint64) int {
	size, most := uint64(mapSize64), uint64(1)<<46
	if strconv.IntSize == 32 {
		size, most = 512<<20, 1<<30
	}
	for size < 2*used && size < most {
		size *= 2
	}
	return int(size)
}
