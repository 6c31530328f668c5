// Package memory keeps the process small: garbage waits for its collection only as long as memory is left.
package memory

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// few is the memory that the process may always have, garbage included.
const few = 200 << 20

// Bound limits garbage from now on: the process has at most half as much as what it uses, or few bytes in
// all. Programs that use little collect it as seldom as without a limit. GOGC and GOMEMLIMIT decide instead
// if they are set.
func Bound() {
	if !isSet(os.Getenv) {
		adapt()
	}
}

// isSet reports whether the environment decides.
func isSet(getenv func(string) string) bool {
	return getenv("GOGC") != "" || getenv("GOMEMLIMIT") != ""
}

// limit is the limit of a process that uses so many bytes.
func limit(live uint64) int64 { return max(few, int64(live+live/2)) }

// adapt sets the limit after this and each further collection, which runs the finalizers.
func adapt() {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	debug.SetMemoryLimit(limit(live[0].Value.Uint64()))
	runtime.SetFinalizer(new([64]byte), func(*[64]byte) { adapt() })
}
