package projecttest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/importing"
	"github.com/lineage-store/lineage/sqladapter/project"
)

// testRemnants deletes contexts and a thread from which others were forked. What is left of them has rows while
// there are forks, and an import brings it to another store: a fork inherits through it what it did before.
func testRemnants(t *testing.T, s *suite) {
	store, database := newStore(t), s.New(t)
	db := s.open(t, database)
	defer db.Close()
	prompt, model := "You count birds.", "large"
	kept, err := store.CreateThread(bg, lineage.ThreadOptions{SourceID: "z", UserID: "bob", Overrides: lineage.Overrides{JSON: []byte(`{"s":0}`)}})
	require.NoError(t, err)
	top, err := kept.Active(bg)
	require.NoError(t, err)
	gone, err := store.CreateThread(bg, lineage.ThreadOptions{SourceID: "gone", UserID: "ada"})
	require.NoError(t, err)
	main, err := top.Fork(bg, lineage.ForkOptions{Thread: gone.ID(), Overrides: lineage.Overrides{SystemPrompt: &prompt, JSON: []byte(`{"t":1}`)}})
	require.NoError(t, err)
	_, err = main.Extend(bg, lineage.User("how many?"))
	require.NoError(t, err)
	require.NoError(t, store.Values(lineage.Owner{Context: top.ID()}).Set(bg, "k", []byte(`"of the top"`)))
	between, err := main.Fork(bg, lineage.ForkOptions{Thread: kept.ID(), Overrides: lineage.Overrides{Model: &model, JSON: []byte(`{"u":2}`)}, Metadata: []byte(`{}`)})
	require.NoError(t, err)
	first, err := store.CreateThread(bg, lineage.ThreadOptions{SourceID: "a", UserID: "bob"})
	require.NoError(t, err)
	leaf, err := between.Fork(bg, lineage.ForkOptions{Thread: first.ID()})
	require.NoError(t, err)
	require.NoError(t, first.NameBranch(bg, "leaf", leaf))
	direct, err := main.Fork(bg, lineage.ForkOptions{Thread: first.ID()})
	require.NoError(t, err)
	require.NoError(t, store.Values(lineage.Owner{Context: between.ID()}).Set(bg, "k", []byte(`"of a fork"`)))
	require.NoError(t, store.Values(lineage.Owner{Context: top.ID()}).Set(bg, "k", []byte(`"later"`)))
	_, err = between.Summarize(bg, shortener{"one question"}, lineage.SummarizeOptions{})
	require.NoError(t, err)
	s.same(t, store, database, db)
	remnants := func(want ...*lineage.Context) {
		t.Helper()
		s.same(t, store, database, db)
		for _, c := range want {
			require.Equal(t, 1, count(t, database, fmt.Sprintf(`SELECT COUNT(*) FROM "contexts" WHERE "remnant" = 1 AND "id" = '%v'`, c.ID())))
			require.Zero(t, count(t, database, fmt.Sprintf(`SELECT COUNT(*) FROM "lineage_values" WHERE "owner" = '%v'`, c.ID())))
			require.Zero(t, count(t, database, fmt.Sprintf(`SELECT COUNT(*) FROM "lineage_summaries" WHERE "context_id" = '%v'`, c.ID())))
		}
		require.Equal(t, len(want), count(t, database, `SELECT COUNT(*) FROM "contexts" WHERE "remnant" = 1`))
	}
	remnants()

	require.NoError(t, between.Delete(bg))
	remnants(between)
	require.Equal(t, 1, count(t, database, `SELECT COUNT(*) FROM "lineage_values" WHERE "scope" = 'context'`), "values are not inherited through a remnant")
	require.NoError(t, gone.Delete(bg))
	remnants(between, main)

	for _, chats := range []string{"", "bob"} { // of any user, or one
		other := newStore(t)
		_, err := importing.Run(bg, db, other, importing.Options{UserID: chats, Problem: func(id string, err error) { require.NoError(t, err, id) }})
		require.NoError(t, err)
		requireInherited(t, store, other, leaf, direct, top)
		requireSameValues(t, store, other, leaf, direct, top)
		for _, c := range []*lineage.Context{between, main} {
			_, err := other.Context(bg, c.ID())
			require.ErrorIs(t, err, lineage.ErrNotFound)
		}
		again := s.New(t)
		second := s.open(t, again)
		s.project(t, other, second)
		require.Equal(t, 2, count(t, again, `SELECT COUNT(*) FROM "contexts" WHERE "remnant" = 1`))
		require.NoError(t, second.Close())
		head, err := other.View().Head(bg)
		require.NoError(t, err)
		s.doImport(t, db, other)
		now, err := other.View().Head(bg)
		require.NoError(t, err)
		require.Equal(t, head, now, "importing again changes nothing")
	}

	require.NoError(t, first.NameBranch(bg, "main2", direct))
	require.NoError(t, first.Switch(bg, "main2"))
	require.NoError(t, first.DeleteBranch(bg, "leaf"))
	remnants(main)
	require.NoError(t, first.Delete(bg))
	remnants()
}

// requireInherited compares what contexts of a store inherit with those of a store that imported them.
func requireInherited(t require.TestingT, store, imported *lineage.Store, contexts ...*lineage.Context) {
	for _, c := range contexts {
		want, err := c.Effective(bg)
		require.NoError(t, err)
		again, err := imported.Context(bg, c.ID())
		require.NoError(t, err)
		got, err := again.Effective(bg)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

// requireSameValues compares the values of contexts of a store with those of a store that imported them.
func requireSameValues(t require.TestingT, store, imported *lineage.Store, contexts ...*lineage.Context) {
	for _, c := range contexts {
		for _, key := range []string{"k", "l"} {
			want, missing := store.Values(lineage.Owner{Context: c.ID()}).Get(bg, key)
			got, err := imported.Values(lineage.Owner{Context: c.ID()}).Get(bg, key)
			require.Equal(t, missing == nil, err == nil, "%v %v", missing, err)
			require.Equal(t, string(want.JSON), string(got.JSON))
		}
	}
}

// belowAlone reports whether a context descends from one outside of threads, which an import does not bring.
func belowAlone(t require.TestingT, store *lineage.Store, c *lineage.Context) bool {
	for {
		got, err := c.Info(bg)
		if errors.Is(err, lineage.ErrNotFound) {
			return false
		}
		require.NoError(t, err)
		if got.Thread.IsZero() || got.Parent.IsZero() {
			return got.Thread.IsZero()
		}
		c, err = store.Context(bg, got.Parent)
		if errors.Is(err, lineage.ErrNotFound) {
			return false
		}
		require.NoError(t, err)
	}
}

// testRemnantsRandom forks and deletes at random, in any order, and creates branches again with the ids of deleted
// ones, while projectors run and are interrupted. The rows are those of a new database.
func testRemnantsRandom(t *testing.T, s *suite) {
	s.check(t, func(r *rapid.T) {
		store, database := newStore(t), s.New(t)
		db, other := s.open(r, database), s.open(r, database)
		defer db.Close()
		defer other.Close()
		m := newMachine(store)
		m.tolerate(r, m.newThread(r))
		m.tolerate(r, m.newThread(r))
		steps := []func(*rapid.T) error{
			m.newChat, m.newThread, m.newContext, m.say, m.extend, m.fork, m.fork, m.fork, m.subagent, m.override, m.setValue, m.summarize, m.name, m.again, m.again,
			m.dropBranch, m.dropContext, m.dropContext, m.dropContext, m.dropThread, m.dropChat,
		}
		for range rapid.IntRange(1, 60).Draw(r, "steps") {
			m.tolerate(r, rapid.SampledFrom(steps).Draw(r, "step")(r))
			switch rapid.IntRange(0, 8).Draw(r, "project") {
			case 0, 1:
				p := &project.Projector{Store: store, DB: [...]*sqladapter.DB{db, other}[rapid.IntRange(0, 1).Draw(r, "by")], BatchRows: rapid.SampledFrom([]int{0, 1, 7}).Draw(r, "batch")}
				_, err := p.Run(bg)
				require.NoError(r, err)
				require.Empty(r, differences(r, store, db))
			case 2:
				s.stopAt(r, store, database, rapid.Int64Range(1, 150).Draw(r, "statement"), false)
			}
		}
		s.project(r, store, db)
		requireSummaries(r, store, db)
		requireSame(r, s.rebuilt(t, store, false), dump(r, database, false))
		require.Empty(r, differences(r, store, db))

		imported := newStore(t)
		s.doImport(r, db, imported)
		for thread, err := range store.Threads(bg, lineage.ThreadQuery{}) {
			require.NoError(r, err)
			for c, err := range thread.Contexts(bg) {
				require.NoError(r, err)
				requireInherited(r, store, imported, c)
				if !belowAlone(r, store, c) {
					requireSameValues(r, store, imported, c)
				}
			}
		}
	})
}

// again creates a branch with a source id that a deleted one may have had, from any context.
func (m *machine) again(t *rapid.T) error {
	thread, err := m.thread(t)
	if err != nil {
		return err
	}
	c, err := pick(t, m.contexts)
	if err != nil {
		return err
	}
	model := m.text(t)
	id := fmt.Sprintf("branch-%d", rapid.IntRange(0, 3).Draw(t, "branch"))
	return m.keep(thread.CreateBranch(bg, id, lineage.BranchOptions{From: c, SourceID: id, Overrides: lineage.Overrides{Model: &model}}))
}

// testRemnantsAgain creates contexts again with the ids of deleted ones, between two projections: with forks or
// without, as contexts or remnants, and with another parent.
func testRemnantsAgain(t *testing.T, s *suite) {
	store, database := newStore(t), s.New(t)
	db := s.open(t, database)
	defer db.Close()
	thread, err := store.CreateThread(bg, lineage.ThreadOptions{SourceID: "a", UserID: "ada"})
	require.NoError(t, err)
	main, err := thread.Active(bg)
	require.NoError(t, err)
	fork := func(c *lineage.Context) *lineage.Context {
		f, err := c.Fork(bg, lineage.ForkOptions{})
		require.NoError(t, err)
		return f
	}
	branch := func(from *lineage.Context, id, model string) *lineage.Context {
		t.Helper()
		b, err := thread.CreateBranch(bg, id, lineage.BranchOptions{From: from, SourceID: id, Overrides: lineage.Overrides{Model: &model}})
		require.NoError(t, err)
		require.Equal(t, lineage.SourceBranch(id), b.ID())
		return b
	}
	drop := func(ids ...string) {
		t.Helper()
		for _, id := range ids {
			require.NoError(t, thread.DeleteBranch(bg, id))
		}
	}
	remnants := func(want int) {
		t.Helper()
		s.same(t, store, database, db)
		require.Equal(t, want, count(t, database, `SELECT COUNT(*) FROM "contexts" WHERE "remnant" = 1`))
	}
	// The only fork of a remnant gets another parent.
	between := fork(main)
	b := branch(between, "b", "small")
	require.NoError(t, store.Values(lineage.Owner{Context: b.ID()}).Set(bg, "k", []byte("1")))
	require.NoError(t, between.Delete(bg))
	remnants(1)
	drop("b")
	branch(main, "b", "large")
	remnants(0)

	// Remnants whose own parents are others than before.
	left, right := fork(main), fork(main)
	below := fork(branch(branch(left, "k", "one"), "r", "two"))
	drop("k", "r")
	remnants(2)
	require.NoError(t, left.Delete(bg))
	remnants(3)
	require.NoError(t, below.Delete(bg))
	below = fork(branch(branch(right, "k", "three"), "r", "four"))
	drop("k", "r")
	require.NoError(t, right.Delete(bg))
	remnants(3)
	o, err := below.Effective(bg)
	require.NoError(t, err)
	require.Equal(t, "four", *o.Model)

	// One that is deleted with other overrides, and one that is in another thread afterwards.
	require.NoError(t, below.Delete(bg))
	k := branch(main, "k", "five")
	below = fork(k)
	require.NoError(t, k.Update(bg, func(info *lineage.ContextInfo) error {
		info.Overrides = lineage.Overrides{JSON: []byte(`{"t":1}`)}
		return nil
	}))
	remnants(0)
	model := "six"
	require.NoError(t, k.Update(bg, func(info *lineage.ContextInfo) error { info.Overrides = lineage.Overrides{Model: &model}; return nil }))
	drop("k")
	remnants(1)
	require.NoError(t, below.Delete(bg))
	other, err := store.CreateThread(bg, lineage.ThreadOptions{SourceID: "0", UserID: "ada"})
	require.NoError(t, err)
	k, err = other.CreateBranch(bg, "k", lineage.BranchOptions{From: main, SourceID: "k"})
	require.NoError(t, err)
	fork(k)
	require.NoError(t, thread.Delete(bg))
	remnants(1)
}
