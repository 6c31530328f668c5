package chattest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/chat"
)

// together runs a function n times concurrently and returns its errors.
func together(n int, fn func(i int) error) []error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = fn(i) })
	}
	all.Wait()
	return errs
}

// testConcurrentAppends lets many writers append to one branch. A writer that was overtaken reads the head again. No
// turn may get lost.
func testConcurrentAppends(t *testing.T, s *store) {
	const writers, turns = 8, 6
	s.createChat("c")
	main := s.active("c")
	for _, err := range together(writers, func(w int) error {
		head := chat.Ref("")
		for turn := 0; turn < turns; {
			next, err := s.Append(background, chat.AppendRequest{
				ChatID: "c", BranchID: main.ID, ExpectedHead: head, Messages: says(fmt.Sprintf("q%d.%d", w, turn), fmt.Sprintf("a%d.%d", w, turn)),
			})
			var moved *chat.HeadError
			switch {
			case errors.As(err, &moved):
				head = moved.Actual
			case err != nil:
				return err
			default:
				head = next
				turn++
			}
		}
		return nil
	}) {
		require.NoError(t, err)
	}
	ids := idsOf(collect(t, s.Messages(background, "c")))
	require.Len(t, ids, 2*writers*turns)
	next := make([]int, writers)
	for i := 0; i < len(ids); i += 2 {
		var w, turn int
		_, err := fmt.Sscanf(ids[i], "q%d.%d", &w, &turn)
		require.NoError(t, err)
		require.Equal(t, next[w], turn)
		require.Equal(t, "a"+ids[i][1:], ids[i+1], "a turn stays together")
		next[w]++
	}
}

// testConcurrentAdding lets many writers add children of one message, and lets all of them add the same message.
func testConcurrentAdding(t *testing.T, s *store) {
	const writers = 12
	s.createChat("c")
	s.add("c", "root", "")
	for _, err := range together(writers, func(i int) error {
		if err := s.AddMessage(background, text("c", "same", "root", "user", "same")); err != nil {
			return err
		}
		return s.AddMessage(background, text("c", fmt.Sprint("m", i), "root", "user", fmt.Sprint(i)))
	}) {
		require.NoError(t, err)
	}
	require.Len(t, s.graph("c").Nodes, writers+2)

	s.requireOnce(together(writers, func(i int) error {
		return s.AddMessage(background, text("c", "one", "root", "user", fmt.Sprint(i)))
	}))
}

// requireOnce requires that one call succeeded and that the others got the right error.
func (s *store) requireOnce(errs []error) {
	succeeded := 0
	for _, err := range errs {
		if err == nil {
			succeeded++
			continue
		}
		require.ErrorIs(s.t, err, chat.ErrExists)
	}
	require.Equal(s.t, 1, succeeded)
}

// testConcurrentCreation creates the same things many times concurrently.
func testConcurrentCreation(t *testing.T, s *store) {
	const writers = 12
	for _, err := range together(writers, func(int) error {
		_, err := s.UpsertChat(background, chat.Chat{ID: "c", UserID: "ada"})
		return err
	}) {
		require.NoError(t, err)
	}
	require.Len(t, s.branches("c"), 1)
	s.add("c", "m", "")

	for round := range 20 {
		one, other := fmt.Sprint("one", round), fmt.Sprint("other", round)
		s.requireOnce(together(writers, func(i int) error {
			_, err := s.CreateBranch(background, chat.Branch{ChatID: "c", Name: one, IsActive: true})
			return err
		}))
		s.requireOnce(together(writers, func(i int) error {
			_, err := s.CreateBranch(background, chat.Branch{ID: other, ChatID: "c", Name: fmt.Sprint(other, i)})
			return err
		}))
	}
	require.Len(t, s.branches("c"), 41)
	active := 0
	for _, b := range s.branches("c") {
		if b.IsActive {
			active++
		}
	}
	require.Equal(t, 1, active)

	kept := make([]string, writers)
	for _, err := range together(writers, func(i int) error {
		c, err := s.CreateCheckpoint(background, chat.Checkpoint{ID: fmt.Sprint("k", i), ChatID: "c", Name: "here", MessageID: "m"})
		kept[i] = c.ID
		return err
	}) {
		require.NoError(t, err)
	}
	found, err := s.Checkpoint(background, "c", "here")
	require.NoError(t, err)
	for _, id := range kept {
		require.Equal(t, found.ID, id, "the first one's id is everybody's")
	}
}

// testConcurrentDeletion deletes a chat while others write to it: their writes succeed before the deletion, or fail
// with the right error.
func testConcurrentDeletion(t *testing.T, s *store) {
	for round := range 5 {
		s.createChat("c")
		main := s.active("c")
		for i, err := range together(6, func(i int) error {
			switch i {
			case 0:
				_, err := s.DeleteChat(background, "c", chat.DeleteOptions{})
				return err
			case 1:
				_, err := s.Append(background, chat.AppendRequest{ChatID: "c", BranchID: main.ID, Messages: says(fmt.Sprint("a", round))})
				return err
			case 2:
				_, err := s.CreateBranch(background, chat.Branch{ChatID: "c", Name: "b"})
				return err
			case 3:
				for _, err := range s.Messages(background, "c") {
					if err != nil {
						return err
					}
				}
				return nil
			}
			return s.AddMessage(background, text("c", fmt.Sprint("m", i, round), "", "user", ""))
		}) {
			if err != nil {
				require.ErrorIs(t, err, chat.ErrNotFound, "writer %d", i)
			}
		}
		s.requireGone("c", []string{fmt.Sprint("a", round), fmt.Sprint("m4", round), fmt.Sprint("m5", round)})
	}
}

// testConcurrentChanges lets many writers add members to the metadata of one chat while others change its title and
// add messages. No member may get lost.
//
// feature: storage/metadata-merge
func testConcurrentChanges(t *testing.T, s *store) {
	const writers, turns = 8, 6
	s.createChat("c")
	for _, err := range together(writers, func(w int) error {
		for turn := range turns {
			if err := AddMember(background, s, "c", fmt.Sprintf("k%d.%d", w, turn)); err != nil {
				return err
			}
			title := fmt.Sprintf("title %d.%d", w, turn)
			if _, err := s.UpdateChat(background, "c", chat.ChatUpdate{Title: &title}); err != nil {
				return err
			}
			if err := s.AddMessage(background, text("c", fmt.Sprintf("m%d.%d", w, turn), "", "user", title)); err != nil {
				return err
			}
		}
		return nil
	}) {
		require.NoError(t, err)
	}
	got, err := s.Chat(background, "c")
	require.NoError(t, err)
	require.Regexp(t, `^title \d\.5$`, got.Title)
	var names []string
	for w := range writers {
		for turn := range turns {
			names = append(names, fmt.Sprintf("k%d.%d", w, turn))
		}
	}
	RequireMembers(t, s, "c", names)
}
