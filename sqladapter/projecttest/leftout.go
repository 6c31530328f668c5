package projecttest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/importing"
	"github.com/lineage-store/lineage/sqladapter/project"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
)

// notText is in ids that no database can hold.
const notText = "\xff"

// requireLeftOut requires that a projection leaves out these threads alone, that a new database gets the same rows, and
// that a comparison reports the threads and nothing else.
func (s *suite) requireLeftOut(t testing.TB, store *lineage.Store, database Database, db *sqladapter.DB, threads ...*lineage.Thread) project.Report {
	t.Helper()
	report := s.project(t, store, db)
	want, got := []string{}, []string{}
	for _, thread := range threads {
		want = append(want, thread.ID().String())
	}
	for i := range report.LeftOut {
		got = append(got, report.LeftOut[i].Thread.String())
		require.NotEmpty(t, report.LeftOut[i].Reason)
	}
	require.ElementsMatch(t, want, got)
	require.Equal(t, len(want), report.LeftOutCount)
	requireSame(t, s.rebuilt(t, store, false), dump(t, database, false))
	found := differences(t, store, db)
	require.Len(t, found, len(want), "%v", found)
	for _, d := range found {
		require.Equal(t, project.Missing, d.Kind)
		require.Equal(t, "chats", d.Table)
	}
	return report
}

// speaking returns a thread of a user with a message.
func speaking(t testing.TB, store *lineage.Store, o lineage.ThreadOptions, items ...lineage.Item) (*lineage.Thread, *lineage.Context) {
	thread, err := store.CreateThread(bg, o)
	require.NoError(t, err)
	main, err := thread.Active(bg)
	require.NoError(t, err)
	_, err = main.Extend(bg, append(items, lineage.User("of "+o.Title))...)
	require.NoError(t, err)
	return thread, main
}

// testLeftOut projects a store with threads that no database can hold: they are left out, whatever refers to them, and
// come when they can be held.
func testLeftOut(t *testing.T, s *suite) {
	store, database := newStore(t), s.New(t)
	db := s.open(t, database)
	defer db.Close()
	prompt := "You count birds."
	one, top := speaking(t, store, lineage.ThreadOptions{SourceID: "one", UserID: "ada", Title: "one"})
	odd, main := speaking(t, store, lineage.ThreadOptions{SourceID: "odd" + notText, UserID: "ada", Title: "odd", Overrides: lineage.Overrides{SystemPrompt: &prompt}})
	two, _ := speaking(t, store, lineage.ThreadOptions{SourceID: "two", UserID: "bob" + notText, Title: "two"})
	fork, err := main.Fork(bg, lineage.ForkOptions{Thread: two.ID()})
	require.NoError(t, err)
	require.NoError(t, store.Values(lineage.Owner{Context: main.ID()}).Set(bg, "k", []byte(`"of odd"`)))
	require.NoError(t, store.Values(lineage.Owner{Thread: odd.ID()}).Set(bg, "k", []byte(`"of odd"`)))
	_, err = main.Summarize(bg, shortener{"short"}, lineage.SummarizeOptions{Whole: true})
	require.NoError(t, err)
	report := s.requireLeftOut(t, store, database, db, odd)
	require.Equal(t, 2, report.Threads)
	require.Equal(t, "odd"+notText, report.LeftOut[0].SourceID)
	require.Contains(t, report.LeftOut[0].Reason, "not UTF-8")
	require.Equal(t, 2, count(t, database, `SELECT COUNT(*) FROM "chats"`))
	require.Equal(t, 1, count(t, database, fmt.Sprintf(`SELECT COUNT(*) FROM "contexts" WHERE "remnant" = 1 AND "id" = '%v' AND "system_prompt_override" = '%s'`, main.ID(), prompt)))

	to := newStore(t)
	_, err = importing.Run(bg, db, to, importing.Options{Problem: func(id string, err error) { t.Errorf("%s: %v", id, err) }})
	require.NoError(t, err)
	requireInherited(t, store, to, fork)

	report = s.requireLeftOut(t, store, database, db, odd)
	require.Equal(t, report.From, report.To, "still reported when there is nothing to do")

	// Changes of what is left out, also of what others inherit.
	_, err = main.Extend(bg, lineage.User("more"))
	require.NoError(t, err)
	later := "You count bees."
	require.NoError(t, main.Update(bg, func(c *lineage.ContextInfo) error {
		c.Overrides.SystemPrompt = &later
		return nil
	}))
	require.NoError(t, store.Values(lineage.Owner{Context: main.ID()}).Set(bg, "k", []byte(`"later"`)))
	s.requireLeftOut(t, store, database, db, odd)
	require.Equal(t, 1, count(t, database, `SELECT COUNT(*) FROM "contexts" WHERE "system_prompt_override" = '`+later+`'`))
	require.NoError(t, fork.Delete(bg))
	s.requireLeftOut(t, store, database, db, odd)
	require.Zero(t, count(t, database, `SELECT COUNT(*) FROM "contexts" WHERE "remnant" = 1`))

	// A thread that is there and cannot be held any more, from which others inherit and which inherits, and that can be held again.
	above, err := top.Fork(bg, lineage.ForkOptions{Thread: two.ID()})
	require.NoError(t, err)
	require.NoError(t, store.Values(lineage.Owner{Context: top.ID()}).Set(bg, "k", []byte(`"of the top"`)))
	between, err := top.Fork(bg, lineage.ForkOptions{})
	require.NoError(t, err)
	_, err = between.Fork(bg, lineage.ForkOptions{Thread: two.ID()})
	require.NoError(t, err)
	require.NoError(t, store.Values(lineage.Owner{Context: between.ID()}).Set(bg, "l", []byte(`"of a fork"`)))
	require.NoError(t, store.Values(lineage.Owner{Context: top.ID()}).Set(bg, "k", []byte(`"later"`)))
	s.requireLeftOut(t, store, database, db, odd)
	_, err = one.CreateBranch(bg, "b", lineage.BranchOptions{SourceID: "b" + notText})
	require.NoError(t, err)
	s.requireLeftOut(t, store, database, db, odd, one)
	_, err = above.Extend(bg, lineage.User("after what is left out"))
	require.NoError(t, err)
	s.requireLeftOut(t, store, database, db, odd, one)
	require.NoError(t, one.DeleteBranch(bg, "b"))
	s.requireLeftOut(t, store, database, db, odd)
	require.Equal(t, 2, count(t, database, `SELECT COUNT(*) FROM "chats"`))

	require.NoError(t, odd.Delete(bg))
	s.requireLeftOut(t, store, database, db)
	require.Equal(t, 2, count(t, database, `SELECT COUNT(*) FROM "chats"`))
}

// testLeftOutRefused projects threads with rows that the database refuses, or a chat cannot have, found only when they
// are written, among many others.
func testLeftOutRefused(t *testing.T, s *suite) {
	store, database := newStore(t), s.New(t)
	db := s.open(t, database)
	defer db.Close()
	threads := 30
	for i := range threads {
		speaking(t, store, lineage.ThreadOptions{SourceID: fmt.Sprint("t", i), UserID: "ada", Title: fmt.Sprint(i)})
	}
	first, _ := speaking(t, store, lineage.ThreadOptions{Title: "without an id"})
	s.requireLeftOut(t, store, database, db)
	second, main := speaking(t, store, lineage.ThreadOptions{SourceID: first.ID().String(), Title: "with that of another"})
	s.requireKept(t, store, database, db, threads+1, first)
	_, err := main.Extend(bg, lineage.User("more"))
	require.NoError(t, err)
	s.requireKept(t, store, database, db, threads+1, first)
	got, err := sqlchat.On(db).Chat(bg, second.ID().String())
	require.NoError(t, err)
	require.Nil(t, got)
	got, err = sqlchat.On(db).Chat(bg, first.ID().String())
	require.NoError(t, err)
	require.Equal(t, "with that of another", got.Title)
	require.NoError(t, second.Delete(bg))
	s.requireKept(t, store, database, db, threads+1)

	limits := db.Dialect().Limits()
	if limits.IDBytes+limits.IDUnits == 0 {
		return
	}
	long := strings.Repeat("é", max(limits.IDBytes, limits.IDUnits)+1)
	third, _ := speaking(t, store, lineage.ThreadOptions{Title: "a long user"}, lineage.User("x"), lineage.Item{Role: "user", Body: []byte("by another"), Origin: lineage.Origin{UserID: long}})
	fourth, _ := speaking(t, store, lineage.ThreadOptions{SourceID: long, Title: "a long id"})
	fifth, _ := speaking(t, store, lineage.ThreadOptions{UserID: long, Title: "of a long user"})
	sixth, spoken := speaking(t, store, lineage.ThreadOptions{Title: "a long name"})
	require.NoError(t, sixth.NameBranch(bg, long[:len(long)-2]+"!", spoken))
	s.requireKept(t, store, database, db, threads+1, third, fourth, fifth, sixth)
	require.NoError(t, sixth.NameBranch(bg, "short", spoken))
	s.requireKept(t, store, database, db, threads+2, third, fourth, fifth)
}

// testLeftOutTaken projects a thread with an id that another thread has: it comes when the other one does not have it any
// more. Of what is left out, only what may have changed is tried again.
func testLeftOutTaken(t *testing.T, s *suite) {
	store, database := newStore(t), s.New(t)
	db := s.open(t, database)
	defer db.Close()
	first, _ := speaking(t, store, lineage.ThreadOptions{SourceID: "first", UserID: "ada"})
	mark := func(thread *lineage.Thread, o lineage.CheckpointOptions) lineage.CheckpointInfo {
		t.Helper()
		k, err := thread.SetCheckpoint(bg, "here", o)
		require.NoError(t, err)
		return k
	}
	id := mark(first, lineage.CheckpointOptions{}).ID.String()
	s.requireKept(t, store, database, db, 1)
	second, _ := speaking(t, store, lineage.ThreadOptions{SourceID: "second", UserID: "ada"})
	mark(second, lineage.CheckpointOptions{SourceID: id})
	report := s.project(t, store, db)
	require.Equal(t, 1, report.LeftOutCount)
	require.Equal(t, second.ID(), report.LeftOut[0].Thread, report.LeftOut[0].Reason)
	odd, _ := speaking(t, store, lineage.ThreadOptions{SourceID: "odd" + notText})
	require.Equal(t, 2, s.project(t, store, db).LeftOutCount)

	for _, owner := range []lineage.Owner{{Thread: first.ID()}, {Scope: lineage.UserScope, Name: "ada"}} {
		require.NoError(t, store.Values(owner).Set(bg, "k", []byte(`1`)))
		require.Zero(t, s.project(t, store, db).Total, "neither may be held now")
	}
	require.NoError(t, store.Values(lineage.Owner{Thread: odd.ID()}).Set(bg, "k", []byte(`1`)))
	require.Equal(t, 1, s.project(t, store, db).Total)
	require.NoError(t, first.DeleteCheckpoint(bg, "here"))
	report = s.requireLeftOut(t, store, database, db, odd)
	require.Equal(t, 2, report.Total, "the thread that lost the checkpoint and the one that may be held")
	require.Equal(t, 2, count(t, database, `SELECT COUNT(*) FROM "chats"`))
}

// testLeftOutTakenMessage projects a thread whose message has no id of its own, while another thread has a message with the
// id that it gets instead: it comes when the other thread has moved back from that message.
func testLeftOutTakenMessage(t *testing.T, s *suite) {
	store, database := newStore(t), s.New(t)
	db := s.open(t, database)
	defer db.Close()
	_, main := speaking(t, store, lineage.ThreadOptions{Title: "first"})
	before, err := main.Tip(bg)
	require.NoError(t, err)
	second, other := speaking(t, store, lineage.ThreadOptions{Title: "second"})
	tip, err := other.Tip(bg)
	require.NoError(t, err)
	_, err = main.Extend(bg, lineage.Item{Role: "user", Body: []byte("taken"), SourceID: second.ID().String() + "/" + tip.String()})
	require.NoError(t, err)
	s.requireKept(t, store, database, db, 1, second)
	require.NoError(t, main.MoveTo(bg, before, "undo"))
	s.requireKept(t, store, database, db, 2)
}

// requireKept requires that all chats but the ones that are left out are in a database, and in a new one.
func (s *suite) requireKept(t *testing.T, store *lineage.Store, database Database, db *sqladapter.DB, chats int, leftOut ...*lineage.Thread) {
	t.Helper()
	s.requireLeftOut(t, store, database, db, leftOut...)
	require.Equal(t, chats, count(t, database, `SELECT COUNT(*) FROM "chats"`))
}

// testLeftOutRandom changes a store at random, of which some threads cannot be held for some time, and projects it at
// random times, until the end or some statement.
func testLeftOutRandom(t *testing.T, s *suite) {
	s.check(t, func(r *rapid.T) {
		store, database := newStore(t), s.New(t)
		db := s.open(r, database)
		defer db.Close()
		m, chatsOnly := newMachine(store), rapid.Bool().Draw(r, "chats only")
		for range rapid.IntRange(1, 60).Draw(r, "steps") {
			if rapid.IntRange(0, 4).Draw(r, "odd") == 0 {
				m.tolerate(r, m.odd(r))
			} else {
				m.step(r)
			}
			switch rapid.IntRange(0, 5).Draw(r, "project") {
			case 0:
				p := &project.Projector{Store: store, DB: db, ChatsOnly: chatsOnly, BatchRows: rapid.SampledFrom([]int{0, 1, 7}).Draw(r, "batch")}
				_, err := p.Run(bg)
				require.NoError(r, err)
			case 1:
				s.stopAt(r, store, database, rapid.Int64Range(1, 150).Draw(r, "statement"), chatsOnly)
			}
		}
		report, err := (&project.Projector{Store: store, DB: db, ChatsOnly: chatsOnly}).Run(bg)
		require.NoError(r, err)
		requireSame(r, s.rebuilt(t, store, chatsOnly), dump(r, database, chatsOnly))
		require.Len(r, differences(r, store, db), report.LeftOutCount)
	})
}

// odd makes a thread one that cannot be held, or one that can.
func (m *machine) odd(t *rapid.T) error {
	m.n++
	if rapid.IntRange(0, 4).Draw(t, "new") == 0 {
		thread, err := m.store.CreateThread(bg, lineage.ThreadOptions{SourceID: fmt.Sprint("odd", m.n, notText)})
		if err != nil {
			return err
		}
		m.threads = append(m.threads, thread)
		return m.keep(thread.Active(bg))
	}
	thread, err := m.thread(t)
	if err != nil {
		return err
	}
	branches, err := thread.Branches(bg)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(branches, func(b lineage.BranchInfo) bool { return strings.Contains(b.SourceID, notText) })
	if at >= 0 {
		return thread.DeleteBranch(bg, branches[at].Name)
	}
	return m.keep(thread.CreateBranch(bg, fmt.Sprint("odd", m.n), lineage.BranchOptions{SourceID: fmt.Sprint(m.n, notText)}))
}

// testLeftOutTogether runs several projectors, each with connections of its own, while threads that cannot be held come
// and go.
func testLeftOutTogether(t *testing.T, s *suite) {
	store, database := newStore(t), s.New(t)
	var wg sync.WaitGroup
	for range 3 {
		db := s.open(t, database)
		defer db.Close()
		wg.Go(func() {
			for range 8 {
				if _, err := (&project.Projector{Store: store, DB: db, BatchRows: 3}).Run(bg); err != nil {
					t.Error(err)
				}
			}
		})
	}
	var odd *lineage.Thread
	for i := range 20 {
		converse(t, chat.On(store), fmt.Sprint("chat-", i%3), say(fmt.Sprint("m", i), "text"))
		thread, _ := speaking(t, store, lineage.ThreadOptions{SourceID: fmt.Sprint(i, notText), Title: "odd"})
		if odd != nil {
			require.NoError(t, odd.Delete(bg))
		}
		odd = thread
		chats, err := store.FindThread(bg, "chat-0")
		require.NoError(t, err)
		if i%2 == 0 {
			_, err = chats.CreateBranch(bg, "odd", lineage.BranchOptions{SourceID: fmt.Sprint("b", i, notText)})
		} else {
			err = chats.DeleteBranch(bg, "odd")
		}
		require.NoError(t, err)
	}
	wg.Wait()
	db := s.open(t, database)
	defer db.Close()
	s.requireLeftOut(t, store, database, db, odd)
}
