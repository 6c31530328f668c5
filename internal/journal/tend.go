package journal

import (
	"time"
)

// Durable returns the last commit known to survive power loss.
func (j *Journal) Durable() uint64 { return j.sync.durableNumber() }

// Sync returns when all appended commits up to the given number are durable. After a
// failed sync the kernel may have dropped unwritten data, so the journal accepts no
// commits until it is reopened.
func (j *Journal) Sync(number uint64) error {
	j.sync.mu.Lock()
	defer j.sync.mu.Unlock()
	return j.sync.until(number)
}

// syncLater schedules a sync of the bytes written so far, within the interval.
func (j *Journal) syncLater() {
	s := &j.sync
	if s.armed.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil || s.stopped {
		return
	}
	s.armed.Store(true)
	j.tendLater(time.Now().Add(j.opt.SyncInterval))
}

// pausesPerSync is how often per interval the journal checks for pauses.
const pausesPerSync = 10

// tendLater schedules the next call of tend, after which space is prepared. It is
// called with the lock of the sync state.
func (j *Journal) tendLater(due time.Time) {
	s := &j.sync
	s.timer = time.AfterFunc(min(j.opt.SyncInterval/pausesPerSync, time.Until(due)), func() {
		synced, err := j.tend(due)
		if err != nil {
			j.opt.Logger.Error("sync failed", "err", err)
			return
		}
		j.prepareSpace(synced)
	})
}

// tend syncs if the sync is due, and schedules the next call otherwise.
func (j *Journal) tend(due time.Time) (synced bool, err error) {
	s := &j.sync
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped && time.Now().Before(due) {
		j.tendLater(due)
		return false, nil
	}
	s.timer = nil
	s.armed.Store(false)
	if s.stopped {
		return false, nil
	}
	return true, s.until(s.written.Load())
}
