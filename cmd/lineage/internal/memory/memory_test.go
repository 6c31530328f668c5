package memory

import (
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
)

func TestLimit(t *testing.T) {
	for _, c := range []struct {
		memoryUse
		want int64
		why  string
	}{
		{memoryUse{}, minLimit, ""},
		{memoryUse{live: minLimit / 2, read: minLimit / 2}, minLimit, ""},
		{memoryUse{live: 1000 << 20, read: 1000 << 20}, 1500 << 20, "garbage may be half of what a collection reads"},
		{memoryUse{live: 1000 << 20, read: 600 << 20}, 1300 << 20, "garbage may be half of what a collection reads"},
		{memoryUse{live: 1000 << 20, read: 10 << 20}, 1250 << 20, "what has no pointers allows a quarter"},
		{memoryUse{live: 300 << 20, read: 900 << 20}, 450 << 20, "garbage that was made since is no reason for more"},
		{memoryUse{live: 1000 << 20, read: 1000 << 20, others: 100 << 20}, 1600 << 20, "what is not heap leaves no less for garbage"},
	} {
		require.Equal(t, c.want, c.limit(), c.why)
	}
}

func TestPercent(t *testing.T) {
	for live, want := range map[uint64]int{0: 1600, 4 << 20: 1600, 16 << 20: 400, 64 << 20: 100, 1 << 30: 100} {
		require.Equal(t, want, memoryUse{live: live}.percent(), live)
	}
}

// TestStacksAreNotHeap has many goroutines with large stacks.
func TestStacksAreNotHeap(t *testing.T) {
	const each, goroutines = 64 << 10, 500
	before := used().others
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
	during := used().others
	close(end)
	ended.Wait()
	require.Greater(t, during, before+each*goroutines)
}

// TestBound sees the limit grow with what is used, and shrink again. What has pointers allows more garbage.
func TestBound(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	Bound()
	const small = minLimit / 4 // more than what this test and its stacks take
	near := func(want int64) func(limit int64) bool {
		return func(limit int64) bool { return limit >= want && limit < want+small }
	}
	require.True(t, near(minLimit)(debug.SetMemoryLimit(-1)))
	reached := func(ok func(limit int64) bool) {
		require.Eventually(t, func() bool { runtime.GC(); return ok(debug.SetMemoryLimit(-1)) }, time.Minute, time.Millisecond)
	}
	heap := make([]byte, minLimit) // never touched, so it takes no memory of the machine
	reached(near(minLimit + minLimit/4))
	runtime.KeepAlive(heap)
	heap = nil
	reached(near(minLimit))
	pointers := make([]*byte, minLimit/unsafe.Sizeof((*byte)(nil)))
	reached(near(minLimit + minLimit/2))
	runtime.KeepAlive(pointers)
	pointers = nil
	reached(near(minLimit))
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
