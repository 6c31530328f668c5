package embedded

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/embedded/entries"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/vfs/crashfs"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// asked returns a commit with unique contents.
func asked(says string) *structure.Commit {
	return &structure.Commit{Records: []structure.Record{&structure.Thread{ID: structure.DeriveID[structure.ThreadID](says), Title: says}}}
}

func sessionID(n uint64) (id [16]byte) {
	binary.BigEndian.PutUint64(id[8:], n+1)
	return id
}

// request sends a request at normal durability.
func request(e *Engine, session, sequence uint64) (backend.Receipt, error) {
	return e.Apply(background, asked(fmt.Sprint(session, " ", sequence)), backend.Options{
		Once: &backend.Once{Session: sessionID(session), Sequence: sequence}, Durability: backend.Normal,
	})
}

// After a kill, with or without the index, requests of sessions in segments are recognized,
// whichever segment the session began in.
func TestOnceAfterKill(t *testing.T) {
	for _, without := range []bool{false, true} {
		t.Run(fmt.Sprint("without index ", without), func(t *testing.T) {
			dir, disk := t.TempDir(), crashfs.New()
			o := Options{FS: disk, SegmentSize: 4 << 10, NoPacking: true}
			e, err := Open(background, dir, o)
			require.NoError(t, err)
			said := map[[2]uint64]backend.Cursor{}
			for round := range uint64(4) {
				for n := range uint64(60) {
					session, sequence := n%7, round*9+n/7+1
					if n%5 == 0 {
						sequence += 3 // out of order
					}
					key := [2]uint64{session, sequence}
					receipt, err := request(e, session, sequence)
					require.NoError(t, err)
					if before, ok := said[key]; ok {
						require.Equal(t, backend.Receipt{Cursor: before, Repeated: true}, receipt)
						continue
					}
					require.False(t, receipt.Repeated)
					said[key] = receipt.Cursor
					if n == 30 && round%2 == 0 {
						require.NoError(t, e.index.Checkpoint())
					}
				}
				disk = disk.Crash(crashfs.KeepAll())
				_ = e.Close()
				if without {
					require.NoError(t, index.Remove(e.dir.index()))
				}
				o.FS = disk
				e, err = Open(background, dir, o)
				require.NoError(t, err)
				head := e.index.Number()
				for key, at := range said {
					receipt, err := request(e, key[0], key[1])
					require.NoError(t, err)
					require.Equal(t, backend.Receipt{Cursor: at, Repeated: true}, receipt)
				}
				require.Equal(t, head, e.index.Number())
				requireSound(t, e)
			}
			require.NoError(t, e.Close())
		})
	}
}

// Packs do not store requests. The index does; without it, requests of an old session are refused,
// and a new session is not taken for an old one.
func TestOnceAfterPack(t *testing.T) {
	dir := t.TempDir()
	o := Options{SegmentSize: 4 << 10, NoPacking: true}
	e, err := Open(background, dir, o)
	require.NoError(t, err)
	for n := range uint64(60) {
		_, err := request(e, 0, n+1)
		require.NoError(t, err)
	}
	_, err = e.Pack(background, backend.PackOptions{All: true})
	require.NoError(t, err)
	receipt, err := request(e, 0, 30)
	require.NoError(t, err)
	require.True(t, receipt.Repeated)
	for n := range uint64(40) { // continues in segments
		_, err := request(e, 0, 61+n)
		require.NoError(t, err)
		_, err = request(e, 1, 1+n)
		require.NoError(t, err)
	}
	require.NoError(t, e.Close())
	require.NoError(t, index.Remove(e.dir.index()))

	e, err = Open(background, dir, o)
	require.NoError(t, err)
	defer e.Close()
	head := e.index.Number()
	for _, sequence := range []uint64{30, 60, 101, 102, 200} {
		_, err := request(e, 0, sequence)
		require.ErrorIs(t, err, backend.ErrUncertain, "it may have been applied before it was packed")
	}
	receipt, err = request(e, 0, 100)
	require.NoError(t, err)
	require.True(t, receipt.Repeated)
	receipt, err = request(e, 1, 40)
	require.NoError(t, err)
	require.True(t, receipt.Repeated, "the whole session is in segments")
	_, err = request(e, 2, 1)
	require.ErrorIs(t, err, backend.ErrUncertain, "older than the packed commits")
	require.Equal(t, head, e.index.Number())

	at, err := e.Head(background)
	require.NoError(t, err)
	once := &backend.Once{Session: sessionID(3), Since: at, Sequence: 1}
	receipt, err = e.Apply(background, asked("new"), backend.Options{Once: once})
	require.NoError(t, err)
	require.False(t, receipt.Repeated)
	once = &backend.Once{Session: sessionID(4), Since: backend.Cursor{Number: at.Number, ID: at.ID + 1}, Sequence: 1}
	_, err = e.Apply(background, asked("elsewhere"), backend.Options{Once: once})
	require.ErrorIs(t, err, backend.ErrDiverged)
	requireSound(t, e)
}

// The number of known sessions is limited; beyond it the longest idle session is forgotten.
//
//test:norace
func TestSessionsAreBounded(t *testing.T) {
	dir := t.TempDir()
	e, err := Open(background, dir, Options{})
	require.NoError(t, err)
	last := uint64(1)
	for n := range uint64(entries.MaxSessions + 10) {
		head, err := e.Head(background)
		require.NoError(t, err)
		_, err = e.Apply(background, asked(fmt.Sprint("begins ", n)), backend.Options{
			Once: &backend.Once{Session: sessionID(n), Since: head, Sequence: 1}, Durability: backend.Normal,
		})
		require.NoError(t, err)
		if n > 5 && n%100 == 0 { // keep it from being idle
			last++
			receipt, err := request(e, 5, last)
			require.NoError(t, err)
			require.False(t, receipt.Repeated)
		}
	}
	receipt, err := request(e, 5, last)
	require.NoError(t, err)
	require.True(t, receipt.Repeated)
	require.Len(t, e.sessions.known, entries.MaxSessions)
	require.Len(t, e.sessions.last, entries.MaxSessions)
	for range 2 {
		head := e.index.Number()
		_, err = request(e, 0, 1)
		require.ErrorIs(t, err, backend.ErrUncertain)
		receipt, err := request(e, entries.MaxSessions-1, 1)
		require.NoError(t, err)
		require.True(t, receipt.Repeated)
		require.Equal(t, head, e.index.Number())
		require.Equal(t, entries.MaxSessions+1, entriesOf(t, e)[keys.TableRequests], "forgotten sessions free their entries")
		require.NoError(t, e.Close())
		e, err = Open(background, dir, Options{})
		require.NoError(t, err)
	}
	for n := range uint64(entries.MaxSessions + 10) {
		require.NoError(t, e.Forget(background, sessionID(n)))
	}
	require.Equal(t, 1, entriesOf(t, e)[keys.TableRequests], "the horizon")
	requireSound(t, e)
	require.NoError(t, e.Close())
}

// A session that was idle for long is forgotten, whether or not the store was reopened. Its client
// gets ErrUncertain.
func TestSessionsAge(t *testing.T) {
	dir := t.TempDir()
	now := time.UnixMilli(1)
	reopened := func() *Engine {
		e, err := Open(background, dir, Options{NoPacking: true})
		require.NoError(t, err)
		e.sessions.now = func() time.Time { return now }
		for _, s := range e.sessions.known {
			s.used = now
		}
		return e
	}
	e := reopened()
	apply := func(session, sequence uint64) {
		t.Helper()
		head, err := e.Head(background)
		require.NoError(t, err)
		_, err = e.Apply(background, asked(fmt.Sprint(session, "-", sequence)), backend.Options{
			Once: &backend.Once{Session: sessionID(session), Since: head, Sequence: sequence}, Durability: backend.Normal,
		})
		require.NoError(t, err)
	}
	apply(0, 1)
	apply(1, 1)
	now = now.Add(entries.SessionAge)
	apply(1, 2)
	require.Len(t, e.sessions.known, 2, "not longer ago than that")
	require.NoError(t, e.Close())
	e = reopened()
	defer func() { require.NoError(t, e.Close()) }()
	now = now.Add(entries.SessionAge)
	apply(1, 3)
	require.Len(t, e.sessions.known, 2, "it may have been used until the store was opened")
	now = now.Add(1)
	apply(1, 4)
	require.Len(t, e.sessions.known, 1)
	require.Equal(t, 1, e.sessions.order.Len())
	_, err := request(e, 0, 1)
	require.ErrorIs(t, err, backend.ErrUncertain)
	receipt, err := request(e, 1, 1)
	require.NoError(t, err)
	require.True(t, receipt.Repeated)
	requireSound(t, e)
}

// A request that was applied at normal durability and is repeated at full durability is durable
// when the second call returns.
func TestOnceAgainIsDurable(t *testing.T) {
	dir, disk := t.TempDir(), crashfs.New()
	o := Options{FS: disk, SyncInterval: time.Hour}
	e, err := Open(background, dir, o)
	require.NoError(t, err)
	first, err := request(e, 0, 1)
	require.NoError(t, err)
	second, err := e.Apply(background, asked("0 1"), backend.Options{Once: &backend.Once{Session: sessionID(0), Sequence: 1}, Durability: backend.Full})
	require.NoError(t, err)
	require.Equal(t, backend.Receipt{Cursor: first.Cursor, Repeated: true}, second)
	lost, err := request(e, 0, 2)
	require.NoError(t, err)
	o.FS = disk.Crash(crashfs.KeepNone())
	_ = e.Close()

	e, err = Open(background, dir, o)
	require.NoError(t, err)
	defer e.Close()
	head, err := e.Head(background)
	require.NoError(t, err)
	require.Equal(t, first.Cursor, head)
	receipt, err := request(e, 0, 2)
	require.NoError(t, err)
	require.False(t, receipt.Repeated, "power loss took it")
	require.Equal(t, lost.Number, receipt.Number)
	require.NotEqual(t, lost.ID, receipt.ID)
}

// Any session's entry can be decoded to the same session.
func TestSessionEntry(t *testing.T) {
	x := newSessions()
	put := map[string][]byte{}
	number := uint64(0)
	for n := range uint64(300) {
		number += 1 + n%3
		x.note(number, sessionID(n%4), n/4*2+n%3, n < 4 && n != 2, func(key, value []byte) { put[string(key)] = value })
	}
	for id, want := range x.known {
		encoded := put[string(keys.Of(keys.TableRequests, id[:]))]
		got, err := entries.DecodeSession(encoded)
		require.NoError(t, err)
		require.Equal(t, want.Session, got)
		for cut := range encoded {
			_, _ = entries.DecodeSession(encoded[:cut]) // does not panic
		}
	}
}
