package projecttest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/derived/derivedtest"
	"github.com/lineage-store/lineage/sqladapter/project"
)

// projected is a database for the suite of derived data.
type projected struct {
	*suite
	database  Database
	chatsOnly bool
}

// handle is a projector with small transactions.
type handle struct {
	*project.Projector
}

func (h handle) Update(ctx context.Context) error {
	_, err := h.Run(ctx)
	return err
}

func (h handle) Close() error { return h.DB.Close() }

func (p *projected) Open(t require.TestingT, store *lineage.Store, written func()) derivedtest.Handle {
	return handle{&project.Projector{
		Store: store, DB: p.suite.open(t, p.database), ChatsOnly: p.chatsOnly, BatchRows: 1, Progress: func(project.Report) { written() },
	}}
}

func (p *projected) Rows(t require.TestingT) (all []string) {
	rows := dump(t, p.database, p.chatsOnly)
	for _, table := range slices.Sorted(maps.Keys(rows)) {
		for _, row := range rows[table] {
			all = append(all, table+" "+row)
		}
	}
	return all
}

func (p *projected) Number(t require.TestingT) (n int) {
	_ = p.database.SQL.QueryRowContext(bg, `SELECT commit_number FROM "lineage_projection"`).Scan(&n) // there may be no table yet
	return n
}

func testDerived(t *testing.T, s *suite) { s.derived(t, false) }

func testDerivedChatsOnly(t *testing.T, s *suite) { s.derived(t, true) }

// derived runs the suite of derived data.
func (s *suite) derived(t *testing.T, chatsOnly bool) {
	derivedtest.Run(t, derivedtest.Config{Checks: cmp.Or(s.Checks, 20), New: func(t testing.TB) derivedtest.Data {
		return &projected{s, s.New(t), chatsOnly}
	}})
}

// testOlderSnapshot projects a snapshot after another projector has written the state of a newer one.
func testOlderSnapshot(t *testing.T, s *suite) {
	store, database := newStore(t), s.New(t)
	db, other := s.open(t, database), s.open(t, database)
	defer db.Close()
	defer other.Close()
	chats := chat.On(store)
	converse(t, chats, "gone", say("g1", "one"))
	converse(t, chats, "stays", say("s1", "two"))
	s.project(t, store, db)
	converse(t, chats, "gone", say("g2", "three"))
	l, late := derivedtest.NewLate(store)
	l.Snapshotted = func() {
		_, err := chats.DeleteChat(bg, "gone", chat.DeleteOptions{})
		require.NoError(t, err)
		converse(t, chats, "stays", say("s2", "four"))
		s.project(t, store, db)
	}
	head := func() int { return count(t, database, `SELECT commit_number FROM "lineage_projection"`) }
	report, err := (&project.Projector{Store: late, DB: other}).Run(bg)
	require.NoError(t, err)
	now, err := store.View().Head(bg)
	require.NoError(t, err)
	require.Equal(t, now, report.To)
	require.EqualValues(t, now.Number, head())
	require.Zero(t, report.Transactions)
	requireSame(t, s.rebuilt(t, store, false), dump(t, database, false))
}

// testOlderThanPart projects a snapshot that is older than what another projector has brought in part. The database
// is completed from a newer snapshot, so nothing that was deleted comes back meanwhile.
func testOlderThanPart(t *testing.T, s *suite) {
	store, database := newStore(t), s.New(t)
	db, other := s.open(t, database), s.open(t, database)
	defer db.Close()
	defer other.Close()
	chats := chat.On(store)
	converse(t, chats, "gone", say("g1", "one"))
	s.project(t, store, db)
	converse(t, chats, "gone", say("g2", "two"))
	l, late := derivedtest.NewLate(store)
	inPart, goOn, ended := make(chan struct{}), make(chan struct{}), make(chan error)
	l.Snapshotted = func() {
		_, err := chats.DeleteChat(bg, "gone", chat.DeleteOptions{})
		require.NoError(t, err)
		for i := range 5 {
			converse(t, chats, fmt.Sprint("new", i), say(fmt.Sprint("n", i), "three"))
		}
		var once sync.Once
		p := &project.Projector{Store: store, DB: db, BatchRows: 1, Progress: func(project.Report) {
			once.Do(func() { close(inPart); <-goOn })
		}}
		go func() { _, err := p.Run(bg); ended <- err }()
		<-inPart
		require.Zero(t, count(t, database, `SELECT COUNT(*) FROM "chats" WHERE "id" = 'gone'`))
	}
	_, err := (&project.Projector{Store: late, DB: other, BatchRows: 1, Progress: func(project.Report) {
		require.Zero(t, count(t, database, `SELECT COUNT(*) FROM "chats" WHERE "id" = 'gone'`), "a deleted chat came back")
	}}).Run(bg)
	require.NoError(t, err)
	requireSame(t, s.rebuilt(t, store, false), dump(t, database, false))
	close(goOn)
	require.NoError(t, <-ended)
	requireSame(t, s.rebuilt(t, store, false), dump(t, database, false))
}

// testTogether runs projectors on two handles while the store is written, forked and deleted from. The position
// never goes back.
func testTogether(t *testing.T, s *suite) {
	store, database := newStore(t), s.New(t)
	end := make(chan struct{})
	var wg sync.WaitGroup
	for i := range 3 {
		db := s.open(t, database)
		defer db.Close()
		wg.Go(func() {
			for at := uint64(0); ; {
				report, err := (&project.Projector{Store: store, DB: db, BatchRows: 5 + i}).Run(bg)
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
	db := s.open(t, database)
	defer db.Close()
	s.project(t, store, db)
	requireSame(t, s.rebuilt(t, store, false), dump(t, database, false))
}
