//go:build !windows

package index

// mapSize64 is room enough on 64-bit systems: address space, not memory.
const mapSize64 = 256 << 30
