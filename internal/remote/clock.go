package remote

import "time"

// Clock is the time of a server or a client.
type Clock interface {
	// Now returns a time that is the same for all processes of the machine. It advances while a process is stopped or
	// the machine sleeps.
	Now() time.Duration
	// AfterFunc is time.AfterFunc.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

type systemClock struct{}

func (systemClock) Now() time.Duration { return sinceBoot() }

func (systemClock) AfterFunc(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }
