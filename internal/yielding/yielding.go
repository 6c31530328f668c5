// Package yielding has work that can wait give way to what cannot.
package yielding

import (
	"runtime"
	"time"
)

// Yielder is what a goroutine that works for long asks to let others go on. Its zero
// value is ready for use. Those who block soon, such as writers that wait for the disk,
// find a processor when they wake; those who do not get no more than eight times as much
// of its time as the work. It is for one goroutine at a time.
type Yielder struct {
	back time.Time     // when it went on last
	away time.Duration // how long it was away then
}

// Yield lets others go on, unless the work has lasted for less than an eighth of the time
// that it was kept from it last.
func (y *Yielder) Yield() {
	now := time.Now()
	if y.owed(now) {
		return
	}
	runtime.Gosched()
	y.returned(now, time.Now())
}

// owed reports that the work has to go on for a while.
func (y *Yielder) owed(now time.Time) bool { return now.Sub(y.back) < y.away/patience }

// patience is how much longer others may take than the work.
const patience = 8

func (y *Yielder) returned(left, now time.Time) { y.back, y.away = now, now.Sub(left) }
