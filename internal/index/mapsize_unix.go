//go:build !windows

package index

// mapSize64 is the least size on 64-bit systems: address space, not memory.
const mapSize64 = 256 << 30
