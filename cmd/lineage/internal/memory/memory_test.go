package memory

import (
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLimit(t *testing.T) {
	require.EqualValues(t, few, limit(0, 0))
	require.EqualValues(t, few, limit(few/2, 0))
	require.EqualValues(t, 1500<<20, limit(1000<<20, 0), "garbage may be half of what is used")
	require.EqualValues(t, 1600<<20, limit(1000<<20, 100<<20), "what is not heap leaves no less for garbage")
}

// TestStacksAreNotHeap has many goroutines with large stacks.
func TestStacksAreNotHeap(t *testing.T) {
	const each, goroutines = 64 << 10, 500
	_, before := used()
	var started, ended sync.WaitGroup
	end := make(chan struct{})
	for range goroutines {
		started.Add(1)
		ended.Go(func() {
			var deep func(left int) byte
			deep = func(left int) byte {
				var frame [1 << 10]byte
				if left > 0 {
					frame[left%len(frame)] = deep(left - 1)
				} else {
					started.Done()
					<-end
				}
				return frame[len(frame)/2]
			}
			deep(each / 1024)
		})
	}
	started.Wait()
	_, during := used()
	close(end)
	ended.Wait()
	require.Greater(t, during, before+each*goroutines)
}

// TestBound sees the limit grow with what is used, and shrink again.
func TestBound(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	Bound()
	near := func(limit int64) bool { return limit >= few && limit < few+few/4 }
	require.True(t, near(debug.SetMemoryLimit(-1)))
	heap := make([]byte, few) // never touched, so it takes no memory of the machine
	reached := func(ok func(limit int64) bool) {
		require.Eventually(t, func() bool { runtime.GC(); return ok(debug.SetMemoryLimit(-1)) }, time.Minute, time.Millisecond)
	}
	reached(func(limit int64) bool { return limit >= few+few/2 })
	runtime.KeepAlive(heap)
	heap = nil
	reached(near)
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
