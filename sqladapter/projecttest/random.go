package projecttest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter/project"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
)

func testRandom(t *testing.T, s *suite) { s.random(t, false) }

func testRandomChatsOnly(t *testing.T, s *suite) { s.random(t, true) }

// random changes a store and projects it at random times, until the end or some statement. At the
// end, the database equals a new one.
func (s *suite) random(t *testing.T, chatsOnly bool) {
	s.check(t, func(r *rapid.T) {
		dir, database := t.TempDir(), s.New(t)
		store, err := lineage.Open(bg, dir, lineage.Options{Durability: lineage.Normal})
		require.NoError(r, err)
		defer store.Close()
		db := s.open(r, database)
		defer db.Close()
		m := newMachine(store)
		for range rapid.IntRange(1, 60).Draw(r, "steps") {
			m.step(r)
			switch rapid.IntRange(0, 6).Draw(r, "project") {
			case 0:
				p := &project.Projector{Store: store, DB: db, ChatsOnly: chatsOnly, BatchRows: rapid.SampledFrom([]int{0, 1, 7}).Draw(r, "batch")}
				_, err := p.Run(bg)
				require.NoError(r, err)
			case 1:
				s.stopAt(r, store, database, rapid.Int64Range(1, 150).Draw(r, "statement"), chatsOnly)
			}
		}
		_, err = (&project.Projector{Store: store, DB: db, ChatsOnly: chatsOnly}).Run(bg)
		require.NoError(r, err)
		requireSame(r, s.rebuilt(t, store, chatsOnly), dump(r, database, chatsOnly))
		requireChats(r, store, db)
		if !chatsOnly {
			requireSummaries(r, store, db)
		}
		require.Empty(r, differences(r, store, db))
	})
}

// testRandomSharedIDs projects a store in which messages of several threads have the same id. One
// message of the database has it; the others have the ids of their spans, and none is missing.
func testRandomSharedIDs(t *testing.T, s *suite) {
	s.check(t, func(r *rapid.T) {
		store, database := newStore(t), s.New(t)
		db := s.open(r, database)
		defer db.Close()
		m := newMachine(store)
		m.shared = true
		for range rapid.IntRange(1, 60).Draw(r, "steps") {
			if m.step(r); rapid.IntRange(0, 3).Draw(r, "project") == 0 {
				s.project(r, store, db)
				for info, err := range m.chats.ListChats(bg, chat.ListOptions{}) {
					require.NoError(r, err)
					got, err := sqlchat.On(db).Graph(bg, info.ID)
					require.NoError(r, err)
					require.Len(r, got.Nodes, info.MessageCount)
					for _, n := range got.Nodes {
						if !strings.Contains(n.ID, "/") {
							continue
						}
						found, err := m.chats.Message(bg, info.ID, n.ID) // its id, or that of its span
						require.NoError(r, err)
						require.True(r, found == nil || found.ChatID == info.ID)
					}
				}
				require.Empty(r, differences(r, store, db))
			}
		}
	})
}

// testConcurrent runs several projectors while the store is written.
func testConcurrent(t *testing.T, s *suite) {
	store, database := newStore(t), s.New(t)
	db := s.open(t, database)
	defer db.Close()
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for range 6 {
				if _, err := (&project.Projector{Store: store, DB: db, BatchRows: 3}).Run(bg); err != nil {
					t.Error(err)
				}
			}
		})
	}
	chats := chat.On(store)
	for i := range 20 {
		converse(t, chats, fmt.Sprintf("chat-%d", i%3), say(fmt.Sprintf("m%d", i), fmt.Sprintf("text %d", i%7)))
		if i == 10 {
			_, err := chats.DeleteChat(bg, "chat-1", chat.DeleteOptions{})
			require.NoError(t, err)
		}
	}
	wg.Wait()
	s.project(t, store, db)
	requireSame(t, s.rebuilt(t, store, false), dump(t, database, false))
}

// testFollow follows a store until its context ends.
func testFollow(t *testing.T, s *suite) {
	store, database := newStore(t), s.New(t)
	db := s.open(t, database)
	defer db.Close()
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	reached := make(chan uint64)
	ended := make(chan error)
	go func() {
		ended <- (&project.Projector{Store: store, DB: db}).Follow(ctx, func(r project.Report) {
			select {
			case reached <- r.To.Number:
			case <-ctx.Done():
			}
		})
	}()
	for i := range 3 {
		converse(t, chat.On(store), "a", say(fmt.Sprintf("m%d", i), "text"))
		head, err := store.View().Head(bg)
		require.NoError(t, err)
		for at := range reached {
			if at >= head.Number {
				break
			}
		}
		require.Equal(t, i+1, count(t, database, `SELECT COUNT(*) FROM "messages"`))
	}
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
}
