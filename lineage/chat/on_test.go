package chat_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/chat/chattest"
	"github.com/lineage-store/lineage/lineage/lineagetest"
)

// TestChats runs the suite.
//
// feature: storage/custom
func TestChats(t *testing.T) { chats(t, chattest.RunSequential) }

// TestConformance runs what the suite does from many goroutines, and random calls, under the race detector.
func TestConformance(t *testing.T) {
	campaign.Long(t)
	chats(t, chattest.RunConcurrent)
}

func chats(t *testing.T, run func(*testing.T, chattest.Config)) {
	run(t, chattest.Config{LongChain: 10_500, New: func(t testing.TB) chattest.OpenFunc {
		dir := t.TempDir()
		return func(ctx context.Context) (chat.Store, func() error, error) {
			s, err := lineage.Open(ctx, dir, lineage.Options{Durability: lineage.Normal})
			if err != nil {
				return nil, nil, err
			}
			return chattest.Repeating(chat.On(s), s), func() error { return errors.Join(onlyBranches(s), s.Close()) }, nil
		}
	}})
}

// onlyBranches returns an error if a thread has contexts that are no branches.
func onlyBranches(s *lineage.Store) error {
	for t, err := range s.Threads(background, lineage.ThreadQuery{}) {
		if err != nil {
			return err
		}
		branches, err := t.Branches(background)
		if err != nil {
			return err
		}
		got := make(map[lineage.ContextID]bool)
		for _, b := range branches {
			got[b.Context] = true
		}
		for c, err := range t.Contexts(background) {
			if err != nil {
				return err
			}
			if !got[c.ID()] {
				return fmt.Errorf("thread %v has a hidden context %v", t.ID(), c.ID())
			}
		}
	}
	return nil
}

// A thread whose id another thread has as its source id is no chat: no list has it.
func TestNamesake(t *testing.T) {
	ctx, store := t.Context(), lineagetest.New(t, lineage.Options{})
	add := func(source string) *lineage.Thread {
		t.Helper()
		thread, err := store.CreateThread(ctx, lineage.ThreadOptions{SourceID: source})
		require.NoError(t, err)
		main, err := thread.Active(ctx)
		require.NoError(t, err)
		item := lineage.User("hello")
		item.SourceID = "m"
		_, err = main.Extend(ctx, item)
		require.NoError(t, err)
		return thread
	}
	listed := func(o chat.ListOptions) (ids []string) {
		t.Helper()
		for c, err := range chat.On(store).ListChats(ctx, o) {
			require.NoError(t, err)
			ids = append(ids, c.ID)
		}
		return ids
	}
	hidden := add("")
	id := hidden.ID().String()
	require.Equal(t, []string{id}, listed(chat.ListOptions{}))
	add("other")
	shown := add(id)
	add("") // of no other thread
	require.Len(t, listed(chat.ListOptions{}), 3)
	require.Len(t, listed(chat.ListOptions{Offset: 1, Limit: 10, Oldest: true}), 2)
	require.Len(t, slices.DeleteFunc(listed(chat.ListOptions{}), func(one string) bool { return one != id }), 1)
	n := 0
	for c, err := range chat.WithMessage(ctx, store, "m", "") {
		require.NoError(t, err)
		if n++; c.ID == id {
			require.Equal(t, infoOf(t, shown).CreatedAt.UnixMilli(), c.CreatedAt)
		}
	}
	require.Equal(t, 3, n)
	info := infoOf(t, hidden)
	is := func(want bool) {
		t.Helper()
		got, err := chat.IsChat(ctx, store, &info)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	is(false)
	for range chat.WithBranch(ctx, store, info.Active.String()) {
		require.Fail(t, "it is of no chat")
	}
	require.NoError(t, shown.Delete(ctx))
	require.Len(t, listed(chat.ListOptions{}), 3)
	is(true)
	got, err := chat.InfoOf(ctx, store, &info)
	require.NoError(t, err)
	require.Equal(t, []any{id, 1, 1}, []any{got.ID, got.MessageCount, got.BranchCount})
}

func infoOf(t *testing.T, thread *lineage.Thread) lineage.ThreadInfo {
	t.Helper()
	info, err := thread.Info(t.Context())
	require.NoError(t, err)
	return info
}
