// Package memory keeps the process small: garbage waits for its collection only as long as memory is left.
package memory

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// few is the memory that the process may always have, garbage included, in addition to what is not heap.
const few = 200 << 20

// Bound limits garbage from now on: the heap grows to half as much again as what is live, or to few bytes. Programs that
// use little collect it as seldom as without a limit. GOGC and GOMEMLIMIT decide instead if they are set.
func Bound() {
	if !isSet(os.Getenv) {
		adapt()
	}
}

// isSet reports whether the environment decides.
func isSet(getenv func(string) string) bool {
	return getenv("GOGC") != "" || getenv("GOMEMLIMIT") != ""
}

// limit is the limit of a process with so many live bytes, and others that are not heap. The runtime counts both.
func limit(live, others uint64) int64 { return max(few, int64(live+live/2)) + int64(others) }

// adapt sets the limit after this and each further collection, which runs the finalizers.
func adapt() {
	debug.SetMemoryLimit(limit(used()))
	runtime.SetFinalizer(new([64]byte), func(*[64]byte) { adapt() })
}

// used returns the bytes that were live in the last collection, and those that are not heap, such as stacks.
func used() (live, others uint64) {
	all := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(all)
	others = all[1].Value.Uint64()
	for _, heap := range all[2:] {
		others -= heap.Value.Uint64()
	}
	return all[0].Value.Uint64(), others
}
