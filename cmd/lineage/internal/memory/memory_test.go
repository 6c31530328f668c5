package memory

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLimit(t *testing.T) {
	require.EqualValues(t, few, limit(0))
	require.EqualValues(t, few, limit(few/2))
	require.EqualValues(t, 1500<<20, limit(1000<<20), "garbage may be half of what is used")
}

// TestBound sees the limit grow with what is used, and shrink again.
func TestBound(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	Bound()
	require.EqualValues(t, few, debug.SetMemoryLimit(-1))
	used := make([]byte, few) // never touched, so it takes no memory of the machine
	reached := func(ok func(limit int64) bool) {
		require.Eventually(t, func() bool { runtime.GC(); return ok(debug.SetMemoryLimit(-1)) }, time.Minute, time.Millisecond)
	}
	reached(func(limit int64) bool { return limit >= few+few/2 })
	runtime.KeepAlive(used)
	used = nil
	reached(func(limit int64) bool { return limit < few+few/2 })
}

func TestIsSet(t *testing.T) {
	for name, want := range map[string]bool{"GOGC": true, "GOMEMLIMIT": true, "GOMAXPROCS": false} {
		require.Equal(t, want, isSet(func(of string) string {
			if of == name {
				return "50"
			}
			return ""
		}), name)
	}
}
