package lock

import (
	"crypto/rand"
	"fmt"
	"os"
	"time"
)

// process is what can be told about a pid.
type process struct {
	running bool
	// started distinguishes this process from every other that had or will have
	// its pid in the same scope. It is empty where that cannot be determined.
	started string
}

// place is where this process runs.
type place struct {
	hostname string
	// scope names the set of processes in which a pid and a start time mean
	// something: one boot of one machine and one pid namespace in it. Two
	// containers may share a hostname and a directory, and yet not see each
	// other's processes. It is empty where the hostname has to do.
	scope string
}

func here() (place, error) {
	hostname, err := os.Hostname()
	if err != nil {
		return place{}, fmt.Errorf("name of this machine: %w", err)
	}
	return place{hostname: hostname, scope: processScope()}, nil
}

// contains reports whether the process r names would be seen from here.
func (p place) contains(r *record) bool {
	return r.Hostname == p.hostname && (r.Scope == "" || r.Scope == p.scope)
}

// newRecord describes this process as the holder of a new lock.
func newRecord(at place, stale time.Duration, now time.Time) record {
	pid := os.Getpid()
	return record{
		PID:       pid,
		Timestamp: now.UnixMilli(),
		Hostname:  at.hostname,
		Acquired:  now.UnixMilli(),
		Stale:     stale.Milliseconds(),
		Scope:     at.scope,
		Started:   probe(pid).started,
		Token:     rand.Text(),
	}
}
