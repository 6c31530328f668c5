package chat_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/chat/chattest"
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
