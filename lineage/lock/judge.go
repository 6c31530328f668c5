package lock

import (
	"bytes"
	"time"
)

// judge decides whether a lock file is stale.
type judge struct {
	location location
	probe    func(pid int) process
	// stale is the minimum time without a refresh after which a lock is stale.
	stale time.Duration
}

// isStale judges a lock file seen at now, which is known not to have changed for the time
// unchanged.
func (j judge) isStale(s *sighting, now time.Time, unchanged time.Duration) bool {
	limit := j.stale
	if s.record != nil {
		limit = max(limit, time.Duration(s.record.Stale)*time.Millisecond)
	}
	if unchanged >= limit {
		return true
	}
	if s.record != nil && j.location.contains(s.record) {
		holder := j.probe(s.record.PID)
		if !holder.running {
			return true
		}
		if s.record.Started != "" && holder.started != "" {
			// If the process that took the lock still runs, the timestamp does not matter: the
			// clock may have been set, or the machine suspended.
			return s.record.Started != holder.started
		}
	}
	stamp := s.modified
	if s.record != nil && s.record.Timestamp <= now.UnixMilli() { // a later one is from another clock
		stamp = time.UnixMilli(s.record.Timestamp)
	}
	return now.Sub(stamp) >= limit
}

// watch measures how long a lock file has not changed, by this process's clock only.
type watch struct {
	last  *sighting
	since time.Time
}

// unchanged records a sighting made after before, and returns for how long the file is known not to
// have changed.
func (w *watch) unchanged(s *sighting, before time.Time) time.Duration {
	if w.last == nil || !w.last.modified.Equal(s.modified) || !bytes.Equal(w.last.data, s.data) {
		w.last, w.since = s, time.Now()
		return 0
	}
	return before.Sub(w.since)
}
