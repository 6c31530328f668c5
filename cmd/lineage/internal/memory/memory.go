// Package memory keeps the process small: garbage waits for its collection only as long as memory is left.
package memory

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// minLimit is the memory that the process may always have, garbage included, in addition to what is not heap.
	minLimit = 200 << 20
	// little is the garbage that a small process may always have.
	little = 64 << 20
	// leastHeap is the size up to which the runtime never collects the heap at 100 percent. At 200 percent it is twice that.
	leastHeap = 4 << 20
)

// Bound limits garbage from now on: the heap grows to minLimit bytes, or by a quarter of what is live, or by half of what a collection
// reads of that. What has no pointers is not read, so that collections cost no more. Small programs collect garbage when they have
// little bytes of it, not each time that the heap has doubled. GOGC and GOMEMLIMIT decide instead if they are set.
func Bound() {
	if !isSet(os.Getenv) {
		adapt()
	}
}

// isSet reports whether the environment decides.
func isSet(getenv func(string) string) bool {
	return getenv("GOGC") != "" || getenv("GOMEMLIMIT") != ""
}

// memoryUse is the memory of the process: the bytes that were live in the last collection, those of them that it has read, and those
// that are not heap, such as stacks.
type memoryUse struct{ live, read, others uint64 }

// limit returns the limit of a process, which counts all of its memory.
func (u memoryUse) limit() int64 {
	return int64(max(minLimit, u.live+max(u.live/4, min(u.read, u.live)/2)) + u.others)
}

// percent returns the growth of the heap until the next collection, for SetGCPercent.
func (u memoryUse) percent() int {
	return int(min(max(100, little*100/max(u.live, 1)), 100*little/leastHeap))
}

// adapt sets the limits after this and each further collection, which runs the finalizers.
func adapt() {
	u := used()
	debug.SetMemoryLimit(u.limit())
	debug.SetGCPercent(u.percent())
	runtime.SetFinalizer(new([64]byte), func(*[64]byte) { adapt() })
}

// Release collects garbage and returns its memory to the system, before the process waits for a long time.
func Release() { debug.FreeOSMemory() }

func used() memoryUse {
	all := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/heap:bytes"}, {Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(all)
	others := all[2].Value.Uint64()
	for _, heap := range all[3:] {
		others -= heap.Value.Uint64()
	}
	return memoryUse{all[0].Value.Uint64(), all[1].Value.Uint64(), others}
}
