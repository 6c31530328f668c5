package projecttest

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
)

// late is an engine that calls a function once, after it has made a snapshot.
type late struct {
	backend.Engine
	after func()
}

func (l *late) StoreID() [16]byte { return l.Engine.(backend.Identified).StoreID() }

func (l *late) Snapshot(ctx context.Context) (backend.Snapshot, error) {
	s, err := l.Engine.Snapshot(ctx)
	if after := l.after; after != nil {
		l.after = nil
		after()
	}
	return s, err
}

func newLate(store *lineage.Store) *late { return &late{Engine: write.Of(store).Engine()} }

// testOlderSnapshot projects a snapshot that is older than what another projector has brought meanwhile.
func (s *suite) testOlderSnapshot(t *testing.T) {
	store, place := newStore(t), s.New(t)
	db, other := s.open(t, place), s.open(t, place)
	defer db.Close()
	defer other.Close()
	chats := chat.On(store)
	converse(t, chats, "gone", say("g1", "one"))
	converse(t, chats, "stays", say("s1", "two"))
	s.project(t, store, db)
	converse(t, chats, "gone", say("g2", "three"))
	l := newLate(store)
	l.after = func() {
		_, err := chats.DeleteChat(bg, "gone", chat.DeleteOptions{})
		require.NoError(t, err)
		converse(t, chats, "stays", say("s2", "four"))
		s.project(t, store, db)
	}
	head := func() int { return count(t, place, `SELECT commit_number FROM "lineage_projection"`) }
	report, err := (&sqladapter.Projector{Store: lineage.New(l), DB: other}).Run(bg)
	require.NoError(t, err)
	now, err := store.View().Head(bg)
	require.NoError(t, err)
	require.Equal(t, now, report.To)
	require.EqualValues(t, now.Number, head())
	require.Zero(t, report.Transactions)
	requireSame(t, s.rebuilt(t, store, false), dump(t, place, false))
}

// testOlderThanPart projects a snapshot that is older than what another projector has brought in part. The database
// is completed from a newer snapshot, so nothing that was deleted comes back meanwhile.
func (s *suite) testOlderThanPart(t *testing.T) {
	store, place := newStore(t), s.New(t)
	db, other := s.open(t, place), s.open(t, place)
	defer db.Close()
	defer other.Close()
	chats := chat.On(store)
	converse(t, chats, "gone", say("g1", "one"))
	s.project(t, store, db)
	converse(t, chats, "gone", say("g2", "two"))
	l := newLate(store)
	inPart, goOn, ended := make(chan struct{}), make(chan struct{}), make(chan error)
	l.after = func() {
		_, err := chats.DeleteChat(bg, "gone", chat.DeleteOptions{})
		require.NoError(t, err)
		for i := range 5 {
			converse(t, chats, fmt.Sprint("new", i), say(fmt.Sprint("n", i), "three"))
		}
		var once sync.Once
		p := &sqladapter.Projector{Store: store, DB: db, BatchRows: 1, Progress: func(sqladapter.ProjectReport) {
			once.Do(func() { close(inPart); <-goOn })
		}}
		go func() { _, err := p.Run(bg); ended <- err }()
		<-inPart
		require.Zero(t, count(t, place, `SELECT COUNT(*) FROM "chats" WHERE "id" = 'gone'`))
	}
	_, err := (&sqladapter.Projector{Store: lineage.New(l), DB: other, BatchRows: 1, Progress: func(sqladapter.ProjectReport) {
		require.Zero(t, count(t, place, `SELECT COUNT(*) FROM "chats" WHERE "id" = 'gone'`), "a deleted chat came back")
	}}).Run(bg)
	require.NoError(t, err)
	requireSame(t, s.rebuilt(t, store, false), dump(t, place, false))
	close(goOn)
	require.NoError(t, <-ended)
	requireSame(t, s.rebuilt(t, store, false), dump(t, place, false))
}

// testTogether runs projectors on two handles while the store is written, forked and deleted from. The position
// never goes back.
func (s *suite) testTogether(t *testing.T) {
	store, place := newStore(t), s.New(t)
	end := make(chan struct{})
	var wg sync.WaitGroup
	for i := range 3 {
		db := s.open(t, place)
		defer db.Close()
		wg.Go(func() {
			for at := uint64(0); ; {
				report, err := (&sqladapter.Projector{Store: store, DB: db, BatchRows: 5 + i}).Run(bg)
				if err != nil || report.To.Number < at {
					t.Errorf("%v: at %d after %d", err, report.To.Number, at)
					return
				}
				at = report.To.Number
				select {
				case <-end:
					return
				default:
				}
			}
		})
	}
	chats := chat.On(store)
	for i := range 30 {
		id := fmt.Sprint("chat", i)
		converse(t, chats, id, say(fmt.Sprint("m", i), "one"), say(fmt.Sprint("n", i), "two"))
		thread, err := store.FindThread(bg, id)
		require.NoError(t, err)
		main, err := thread.Active(bg)
		require.NoError(t, err)
		fork, err := main.Fork(bg, lineage.ForkOptions{})
		require.NoError(t, err)
		_, err = fork.Extend(bg, lineage.User("three"))
		require.NoError(t, err)
		if i%4 == 3 {
			_, err := chats.DeleteChat(bg, fmt.Sprint("chat", i-2), chat.DeleteOptions{})
			require.NoError(t, err)
		}
	}
	close(end)
	wg.Wait()
	db := s.open(t, place)
	defer db.Close()
	s.project(t, store, db)
	requireSame(t, s.rebuilt(t, store, false), dump(t, place, false))
}
