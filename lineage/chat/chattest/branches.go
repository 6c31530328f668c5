package chattest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/chat"
)

// feature: state/branch
// feature: storage/branch-list
// feature: storage/nothing
func testBranches(t *testing.T, s *store) {
	s.createChat("c")
	s.add("c", "a", "")
	s.add("c", "b", "a")
	main := s.active("c")
	require.NoError(t, s.UpdateBranchHead(background, "c", main.ID, "b"))

	later := main.CreatedAt + 10
	want := chat.Branch{ID: "side", ChatID: "c", Name: "aside", HeadMessageID: "a", CreatedAt: later + 10}
	require.Equal(t, want, s.createBranch(want))
	empty := s.createBranch(chat.Branch{ChatID: "c", Name: "empty", CreatedAt: later})
	require.NotEmpty(t, empty.ID)
	require.Empty(t, empty.HeadMessageID)

	got, err := s.Branch(background, "c", "aside")
	require.NoError(t, err)
	require.Equal(t, &want, got)
	none, err := s.Branch(background, "c", "nothing")
	require.NoError(t, err)
	require.Nil(t, none)
	none, err = s.Branch(background, "nobody", chat.MainBranch)
	require.NoError(t, err)
	require.Nil(t, none)
	none, err = s.ActiveBranch(background, "nobody")
	require.NoError(t, err)
	require.Nil(t, none)
	require.Empty(t, s.branches("nobody"))

	main.HeadMessageID = "b"
	infos := []chat.BranchInfo{{Branch: main, MessageCount: 2}, {Branch: empty}, {Branch: want, MessageCount: 1}}
	require.Equal(t, infos, s.branches("c"))
	if !s.config.Forgets {
		s.reopen()
		require.Equal(t, infos, s.branches("c"))
	}
	undated := s.createBranch(chat.Branch{ChatID: "c", Name: "undated"})
	require.NotZero(t, undated.CreatedAt)
}

// feature: state/branch-unique
func testRefusedBranches(t *testing.T, s *store) {
	s.createChat("c")
	s.createChat("other")
	s.add("other", "theirs", "")
	s.createBranch(chat.Branch{ID: "b", ChatID: "c", Name: "b"})
	before := s.branches("c")
	for _, test := range []struct {
		branch  chat.Branch
		want    error
		subject chat.Subject
		id      string
	}{
		{chat.Branch{ID: "n", ChatID: "c", Name: "b", IsActive: true}, chat.ErrExists, chat.SubjectBranch, "b"},
		{chat.Branch{ID: "b", ChatID: "c", Name: "n", IsActive: true}, chat.ErrExists, chat.SubjectBranch, "b"},
		{chat.Branch{ID: "b", ChatID: "other", Name: "n", IsActive: true}, chat.ErrExists, chat.SubjectBranch, "b"},
		{chat.Branch{ID: "n", ChatID: "nobody", Name: "n"}, chat.ErrNotFound, chat.SubjectChat, "nobody"},
		{chat.Branch{ID: "n", ChatID: "c", Name: "n", HeadMessageID: "nothing", IsActive: true}, chat.ErrNotFound, chat.SubjectMessage, "nothing"},
		{chat.Branch{ID: "n", ChatID: "c", Name: "n", HeadMessageID: "theirs", IsActive: true}, chat.ErrOtherChat, chat.SubjectMessage, "theirs"},
		{chat.Branch{ID: "n", ChatID: "c", Name: ""}, chat.ErrInvalid, chat.SubjectBranch, ""},
	} {
		_, err := s.CreateBranch(background, test.branch)
		s.requireError(err, test.want, test.subject, test.id)
	}
	require.Equal(t, before, s.branches("c"))
	require.Len(t, s.branches("other"), 1)
	// A name is free in another chat.
	s.createBranch(chat.Branch{ChatID: "other", Name: "b"})
}

// feature: state/one-active
func testActiveBranch(t *testing.T, s *store) {
	s.createChat("c")
	s.createChat("other")
	main := s.active("c")
	requireActive := func(id string) {
		t.Helper()
		require.Equal(t, id, s.active("c").ID)
		active := 0
		for _, b := range s.branches("c") {
			if b.IsActive {
				active++
				require.Equal(t, id, b.ID)
			}
		}
		require.Equal(t, 1, active)
	}
	s.createBranch(chat.Branch{ID: "quiet", ChatID: "c", Name: "quiet"})
	requireActive(main.ID)
	made := s.createBranch(chat.Branch{ID: "loud", ChatID: "c", Name: "loud", IsActive: true})
	require.True(t, made.IsActive)
	requireActive("loud")
	require.NoError(t, s.SetActiveBranch(background, "c", "quiet"))
	requireActive("quiet")
	require.NoError(t, s.SetActiveBranch(background, "c", "quiet"))
	requireActive("quiet")

	s.requireError(s.SetActiveBranch(background, "c", "nothing"), chat.ErrNotFound, chat.SubjectBranch, "nothing")
	s.requireError(s.SetActiveBranch(background, "nobody", "quiet"), chat.ErrNotFound, chat.SubjectChat, "nobody")
	theirs := s.active("other")
	s.requireError(s.SetActiveBranch(background, "c", theirs.ID), chat.ErrOtherChat, chat.SubjectBranch, theirs.ID)
	requireActive("quiet")
	require.Equal(t, theirs, s.active("other"))
}

// feature: state/heads
func testBranchHeads(t *testing.T, s *store) {
	s.createChat("c")
	s.createChat("other")
	s.add("other", "theirs", "")
	s.add("c", "a", "")
	s.add("c", "b", "a")
	s.add("c", "x", "a")
	main := s.active("c").ID
	for _, head := range []chat.Ref{"b", "a", "x", "b", "", "x", "x"} {
		require.NoError(t, s.UpdateBranchHead(background, "c", main, head))
		require.Equal(t, head, s.active("c").HeadMessageID)
	}
	s.requireError(s.UpdateBranchHead(background, "c", main, "nothing"), chat.ErrNotFound, chat.SubjectMessage, "nothing")
	s.requireError(s.UpdateBranchHead(background, "c", main, "theirs"), chat.ErrOtherChat, chat.SubjectMessage, "theirs")
	s.requireError(s.UpdateBranchHead(background, "c", "nothing", "a"), chat.ErrNotFound, chat.SubjectBranch, "nothing")
	require.Equal(t, chat.Ref("x"), s.active("c").HeadMessageID)
	require.Equal(t, []string{"a", "x"}, idsOf(collect(t, s.Messages(background, "c"))))
}

// feature: state/checkpoint
// feature: state/checkpoint-moves
// feature: storage/checkpoints
// feature: storage/nothing
func testCheckpoints(t *testing.T, s *store) {
	s.createChat("c")
	s.createChat("other")
	s.add("other", "theirs", "")
	s.add("c", "a", "")
	s.add("c", "b", "a")
	put := func(c chat.Checkpoint) chat.Checkpoint {
		t.Helper()
		made, err := s.CreateCheckpoint(background, c)
		require.NoError(t, err)
		return made
	}
	first := chat.Checkpoint{ID: "k1", ChatID: "c", Name: "first", MessageID: "a", CreatedAt: 10}
	require.Equal(t, first, put(first))
	second := chat.Checkpoint{ID: "5e57ab1e-0000-4000-8000-000000000000", ChatID: "c", Name: "second", MessageID: "a", CreatedAt: 20}
	require.Equal(t, second, put(second))

	moved := chat.Checkpoint{ID: "another", ChatID: "c", Name: "first", MessageID: "b", CreatedAt: 30}
	got := put(moved)
	moved.ID = "k1"
	require.Equal(t, moved, got, "it keeps its id")
	check := func() {
		t.Helper()
		found, err := s.Checkpoint(background, "c", "first")
		require.NoError(t, err)
		require.Equal(t, &moved, found)
		list, err := s.ListCheckpoints(background, "c")
		require.NoError(t, err)
		require.Equal(t, []chat.Checkpoint{moved, second}, list, "newest first")
	}
	check()
	if !s.config.Forgets {
		s.reopen()
		check()
	}
	for _, test := range []struct {
		checkpoint chat.Checkpoint
		want       error
		subject    chat.Subject
		id         string
	}{
		{chat.Checkpoint{ID: "n", ChatID: "nobody", Name: "n", MessageID: "a"}, chat.ErrNotFound, chat.SubjectChat, "nobody"},
		{chat.Checkpoint{ID: "n", ChatID: "c", Name: "n", MessageID: "nothing"}, chat.ErrNotFound, chat.SubjectMessage, "nothing"},
		{chat.Checkpoint{ID: "n", ChatID: "c", Name: "first", MessageID: "theirs"}, chat.ErrOtherChat, chat.SubjectMessage, "theirs"},
		{chat.Checkpoint{ID: "k1", ChatID: "c", Name: "n", MessageID: "a"}, chat.ErrExists, chat.SubjectCheckpoint, "k1"},
		{chat.Checkpoint{ID: "n", ChatID: "c", Name: "n"}, chat.ErrInvalid, chat.SubjectCheckpoint, "n"},
		{chat.Checkpoint{ID: "n", ChatID: "c", MessageID: "a"}, chat.ErrInvalid, chat.SubjectCheckpoint, ""},
	} {
		_, err := s.CreateCheckpoint(background, test.checkpoint)
		s.requireError(err, test.want, test.subject, test.id)
	}
	check()

	require.NotEmpty(t, put(chat.Checkpoint{ChatID: "other", Name: "first", MessageID: "theirs"}).ID)
	require.NoError(t, s.DeleteCheckpoint(background, "c", "nothing"))
	require.NoError(t, s.DeleteCheckpoint(background, "nobody", "first"))
	check()
	require.NoError(t, s.DeleteCheckpoint(background, "c", "first"))
	none, err := s.Checkpoint(background, "c", "first")
	require.NoError(t, err)
	require.Nil(t, none)
	require.Equal(t, first, put(first), "the name and id are free again")
}
