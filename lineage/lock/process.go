package lock

import (
	"crypto/rand"
	"fmt"
	"os"
	"time"
)

// location identifies where this process runs.
type location struct {
	hostname string
	// scope identifies the processes among which a pid and a start time are unique: a boot of a
	// machine and a pid namespace. Two containers may share a hostname and a directory without
	// seeing each other's processes. If it is empty, only the hostname counts.
	scope string
}

func here() (location, error) {
	hostname, err := os.Hostname()
	if err != nil {
		return location{}, fmt.Errorf("hostname: %w", err)
	}
	return location{hostname: hostname, scope: processScope()}, nil
}

// contains reports whether the process in r is visible from here.
func (p location) contains(r *holderRecord) bool {
	return r.Hostname == p.hostname && (r.Scope == "" || r.Scope == p.scope)
}

// newRecord returns a record with this process as the holder of a new lock.
func newRecord(at location, stale time.Duration, now time.Time) holderRecord {
	pid := os.Getpid()
	return holderRecord{
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
