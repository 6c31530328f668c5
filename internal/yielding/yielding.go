// Package yielding lets background work give way to urgent work.
package yielding

import (
	"runtime"
	"time"
)

// Yielder lets other goroutines run during long work. The zero value is ready for use.
// Goroutines that block soon, such as writers that wait for the disk, get a processor
// when they wake; those that do not block get at most eight times as much processor time
// as the work. A Yielder is for one goroutine.
type Yielder struct {
	back time.Time     // end of the last yield
	away time.Duration // its duration
}

// Yield lets other goroutines run, unless the work has run for less than an eighth of the
// duration of the last yield.
func (y *Yielder) Yield() {
	now := time.Now()
	if y.owed(now) {
		return
	}
	runtime.Gosched()
	y.returned(now, time.Now())
}

// owed reports whether the work must run before it yields again.
func (y *Yielder) owed(now time.Time) bool { return now.Sub(y.back) < y.away/patience }

// patience is the maximum ratio of the time of others to that of the work.
const patience = 8

func (y *Yielder) returned(left, now time.Time) { y.back, y.away = now, now.Sub(left) }
