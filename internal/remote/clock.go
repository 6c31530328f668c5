package remote

import "time"

// Clock is the time of a server or a client.
type Clock interface {
	// Now returns a time that all processes of the machine agree on, and that goes on while one
	// is stopped or the machine sleeps.
	Now() time.Duration
	// AfterFunc calls a function after a time, unless it is stopped before.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

type systemClock struct{}

func (systemClock) Now() time.Duration { return sinceBoot() }

func (systemClock) AfterFunc(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }
