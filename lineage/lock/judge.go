package lock

import (
	"bytes"
	"time"
)

// judge decides whether a lock file still stands for a holder.
type judge struct {
	place place
	probe func(pid int) process
	// stale is the least time without a refresh after which a lock is given up.
	stale time.Duration
}

// isStale judges what was seen at now or later, of which it is known that it
// stayed as it is for the time unchanged.
func (j judge) isStale(s *sighting, now time.Time, unchanged time.Duration) bool {
	limit := j.stale
	if s.record != nil {
		limit = max(limit, time.Duration(s.record.Stale)*time.Millisecond)
	}
	if unchanged >= limit {
		return true
	}
	if s.record == nil {
		return now.Sub(s.modified) >= limit
	}
	if j.place.contains(s.record) {
		holder := j.probe(s.record.PID)
		if !holder.running {
			return true
		}
		if s.record.Started != "" && holder.started != "" {
			// The clock does not matter when the very process that took the lock
			// still runs: it may have been set, or the machine have slept.
			return s.record.Started != holder.started
		}
	}
	return j.age(s, now) >= limit
}

// age is how long ago a record was stamped. A stamp from the future was made by
// another clock and says nothing; then the file system's word counts.
func (j judge) age(s *sighting, now time.Time) time.Duration {
	stamp := time.UnixMilli(s.record.Timestamp)
	if stamp.After(now) {
		stamp = s.modified
	}
	return now.Sub(stamp)
}

// watch remembers since when a lock file has not changed. It measures with this
// process's own clock only.
type watch struct {
	last  *sighting
	since time.Time
}

// unchanged notes what was seen between before and now, and returns for how long
// it is known to have been so.
func (w *watch) unchanged(s *sighting, before time.Time) time.Duration {
	if w.last == nil || !w.last.modified.Equal(s.modified) || !bytes.Equal(w.last.data, s.data) {
		w.last, w.since = s, time.Now()
		return 0
	}
	return before.Sub(w.since)
}
