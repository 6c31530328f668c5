package lock

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// feature: lock/old
func TestStaleness(t *testing.T) {
	const limit = time.Minute
	now := time.UnixMilli(1_700_000_000_000)
	at := func(ago time.Duration) int64 { return now.Add(-ago).UnixMilli() }
	running := process{running: true, started: "100"}
	unknown := process{running: true}
	home := location{hostname: "home", scope: "boot 1"}

	for _, tc := range []struct {
		name      string
		record    *holderRecord
		process   process
		modified  time.Duration // ago
		unchanged time.Duration
		stale     bool
	}{
		{name: "live", record: &holderRecord{Hostname: "home", Scope: "boot 1", Started: "100", Timestamp: at(0)}, process: running},
		{name: "live, old stamp", record: &holderRecord{Hostname: "home", Scope: "boot 1", Started: "100", Timestamp: at(time.Hour)}, process: running},
		{name: "live, seen not to refresh", record: &holderRecord{Hostname: "home", Scope: "boot 1", Started: "100", Timestamp: at(0)}, process: running, unchanged: limit, stale: true},
		{name: "dead", record: &holderRecord{Hostname: "home", Timestamp: at(0)}, stale: true},
		{name: "dead, stamp in the future", record: &holderRecord{Hostname: "home", Timestamp: at(-time.Hour)}, stale: true},
		{name: "pid in use again", record: &holderRecord{Hostname: "home", Scope: "boot 1", Started: "99", Timestamp: at(0)}, process: running, stale: true},
		{name: "start not recorded, fresh", record: &holderRecord{Hostname: "home", Timestamp: at(limit - time.Millisecond)}, process: running},
		{name: "start not recorded, old", record: &holderRecord{Hostname: "home", Timestamp: at(limit)}, process: running, stale: true},
		{name: "start not known, fresh", record: &holderRecord{Hostname: "home", Started: "100", Timestamp: at(0)}, process: unknown},
		{name: "start not known, old", record: &holderRecord{Hostname: "home", Started: "100", Timestamp: at(limit)}, process: unknown, stale: true},
		{name: "foreign, fresh", record: &holderRecord{Hostname: "away", Timestamp: at(limit - time.Millisecond)}},
		{name: "foreign, old", record: &holderRecord{Hostname: "away", Timestamp: at(limit)}, process: running, stale: true},
		{name: "same name, other boot, fresh", record: &holderRecord{Hostname: "home", Scope: "boot 2", Started: "99", Timestamp: at(0)}},
		{name: "same name, other boot, old", record: &holderRecord{Hostname: "home", Scope: "boot 2", Started: "100", Timestamp: at(limit)}, process: running, stale: true},
		{name: "foreign, from the future", record: &holderRecord{Hostname: "away", Timestamp: at(-time.Hour)}},
		{name: "foreign, from the future, file old", record: &holderRecord{Hostname: "away", Timestamp: at(-time.Hour)}, modified: limit, stale: true},
		{name: "foreign, from the future, file too", record: &holderRecord{Hostname: "away", Timestamp: at(-time.Hour)}, modified: -time.Hour},
		{name: "foreign, from the future, seen not to refresh", record: &holderRecord{Hostname: "away", Timestamp: at(-time.Hour)}, unchanged: limit, stale: true},
		{name: "holder refreshes seldom", record: &holderRecord{Hostname: "away", Stale: time.Hour.Milliseconds(), Timestamp: at(limit)}, unchanged: limit},
		{name: "holder refreshes seldom, old", record: &holderRecord{Hostname: "away", Stale: time.Hour.Milliseconds(), Timestamp: at(time.Hour)}, stale: true},
		{name: "holder refreshes often", record: &holderRecord{Hostname: "away", Stale: 1, Timestamp: at(limit - time.Millisecond)}},
		{name: "unreadable, fresh", modified: limit - 1},
		{name: "unreadable, old", modified: limit, stale: true},
		{name: "unreadable, from the future", modified: -time.Hour},
	} {
		t.Run(tc.name, func(t *testing.T) {
			j := judge{location: home, stale: limit, probe: func(int) process { return tc.process }}
			s := &sighting{record: tc.record, modified: now.Add(-tc.modified)}
			require.Equal(t, tc.stale, j.isStale(s, now, tc.unchanged))
		})
	}
}

// The same on disk, with this process as the holder.
func TestLockFilesOfOthers(t *testing.T) {
	at, err := here()
	require.NoError(t, err)
	mine := newRecord(at, time.Minute, time.Now())
	with := func(change func(*holderRecord)) []byte {
		r := mine
		change(&r)
		return r.encode()
	}
	hour := time.Hour.Milliseconds()
	for _, tc := range []struct {
		name string
		data []byte
		old  bool // the file, by an hour
		free bool
	}{
		{name: "live", data: with(func(*holderRecord) {})},
		{name: "foreign, fresh", data: with(func(r *holderRecord) { r.Hostname = "elsewhere.invalid" })},
		{name: "foreign, old", data: with(func(r *holderRecord) { r.Hostname, r.Timestamp = "elsewhere.invalid", r.Timestamp-hour }), free: true},
		{name: "foreign, from the future", data: with(func(r *holderRecord) { r.Hostname, r.Timestamp = "elsewhere.invalid", r.Timestamp+hour })},
		{name: "foreign, from the future, file old", data: with(func(r *holderRecord) { r.Hostname, r.Timestamp = "elsewhere.invalid", r.Timestamp+hour }), old: true, free: true},
		{name: "only the shared keys, old", data: with(func(r *holderRecord) {
			*r = holderRecord{PID: r.PID, Timestamp: r.Timestamp - hour, Hostname: r.Hostname}
		}), free: true},
		{name: "empty", data: nil},
		{name: "empty, old", data: nil, old: true, free: true},
		{name: "torn", data: mustTear(with(func(*holderRecord) {}))},
		{name: "torn, old", data: mustTear(with(func(*holderRecord) {})), old: true, free: true},
		{name: "garbage, old", data: []byte("\x00\xff[[["), old: true, free: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			requireJudged(t, tc.data, tc.old, tc.free)
		})
	}
	if mine.Started != "" {
		t.Run("pid in use again", func(t *testing.T) {
			requireJudged(t, with(func(r *holderRecord) { r.Started += "0" }), false, true)
		})
	}
}

func mustTear(data []byte) []byte { return data[:len(data)/2] }

func requireJudged(t *testing.T, data []byte, old, free bool) {
	t.Helper()
	path := target(t)
	require.NoError(t, os.WriteFile(path+".lock", data, 0o600))
	if old {
		past := time.Now().Add(-time.Hour)
		require.NoError(t, os.Chtimes(path+".lock", past, past))
	}
	l := New(path, Options{})
	locked, err := l.IsLocked()
	require.NoError(t, err)
	require.Equal(t, !free, locked)
	won, err := l.TryAcquire()
	require.NoError(t, err)
	require.Equal(t, free, won)
	require.NoError(t, l.Release())
	if !free {
		after, err := os.ReadFile(path + ".lock")
		require.NoError(t, err)
		require.Equal(t, string(data), string(after))
	}
}

func TestProbe(t *testing.T) {
	self := probe(os.Getpid())
	require.True(t, self.running)
	require.Equal(t, self, probe(os.Getpid()))

	parent := probe(os.Getppid())
	require.True(t, parent.running)
}
