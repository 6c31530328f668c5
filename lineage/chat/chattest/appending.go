package chattest

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/chat"
)

// says returns messages for a request. They have neither chat nor parent.
func says(ids ...string) []chat.Message {
	var messages []chat.Message
	for _, id := range ids {
		messages = append(messages, text("", id, "", "user", "this is "+id))
	}
	return messages
}

func testAppend(t *testing.T, s *store) {
	s.createChat("c")
	main := s.active("c")
	request := chat.AppendRequest{ChatID: "c", BranchID: main.ID, Messages: says("a", "b")}
	head, err := s.Append(background, request)
	require.NoError(t, err)
	require.Equal(t, chat.Ref("b"), head)
	require.Empty(t, request.Messages[1].ParentID, "the request is the caller's")

	head, err = s.Append(background, chat.AppendRequest{ChatID: "c", BranchID: main.ID, ExpectedHead: "b", Messages: says("c")})
	require.NoError(t, err)
	require.Equal(t, chat.Ref("c"), head)
	require.Equal(t, []string{"a", "b", "c"}, s.chain("c", "c"))
	require.Equal(t, head, s.active("c").HeadMessageID)

	// From the middle of a chain, and after a message that was added separately.
	s.createBranch(chat.Branch{ID: "side", ChatID: "c", Name: "side", HeadMessageID: "a"})
	_, err = s.Append(background, chat.AppendRequest{ChatID: "c", BranchID: "side", ExpectedHead: "a", Messages: says("x", "y")})
	require.NoError(t, err)
	s.add("c", "d", "c")
	_, err = s.Append(background, chat.AppendRequest{ChatID: "c", BranchID: main.ID, ExpectedHead: "c", Messages: says("e")})
	require.NoError(t, err)
	require.Equal(t, []string{"a", "x", "y"}, s.chain("c", "y"))
	require.Equal(t, []string{"a", "b", "c", "d"}, s.chain("c", "d"))
	require.Equal(t, []string{"a", "b", "c", "e"}, idsOf(collect(t, s.Messages(background, "c"))))
	got, err := s.Message(background, "c", "x")
	require.NoError(t, err)
	s.requireMessage(text("c", "x", "a", "user", "this is x"), *got)
}

func testAppendNewBranch(t *testing.T, s *store) {
	s.createChat("c")
	main := s.active("c")
	_, err := s.Append(background, chat.AppendRequest{ChatID: "c", BranchID: main.ID, Messages: says("a", "b")})
	require.NoError(t, err)
	later := main.CreatedAt + 1
	head, err := s.Append(background, chat.AppendRequest{
		ChatID: "c", Messages: says("b2", "c2"),
		NewBranch: &chat.Branch{ID: "v2", Name: "main-v2", HeadMessageID: "a", IsActive: true, CreatedAt: later},
	})
	require.NoError(t, err)
	require.Equal(t, chat.Ref("c2"), head)
	main.HeadMessageID, main.IsActive = "b", false
	v2 := chat.Branch{ID: "v2", ChatID: "c", Name: "main-v2", HeadMessageID: "c2", IsActive: true, CreatedAt: later}
	require.Equal(t, []chat.BranchInfo{{Branch: main, MessageCount: 2}, {Branch: v2, MessageCount: 3}}, s.branches("c"))
	require.Equal(t, []string{"a", "b2", "c2"}, s.chain("c", "c2"))

	_, err = s.Append(background, chat.AppendRequest{ChatID: "c", NewBranch: &chat.Branch{Name: "new root"}, Messages: says("root")})
	require.NoError(t, err)
	require.Equal(t, []string{"root"}, s.chain("c", "root"))
	require.Equal(t, v2, s.active("c"))
}

// testAppendAtomic tries appends that must fail without changing anything.
func testAppendAtomic(t *testing.T, s *store) {
	s.createChat("c")
	s.createChat("other")
	s.add("other", "theirs", "")
	main, theirs := s.active("c"), s.active("other")
	_, err := s.Append(background, chat.AppendRequest{ChatID: "c", BranchID: main.ID, Messages: says("a", "b")})
	require.NoError(t, err)
	if theirs := (chat.AppendRequest{ChatID: "other", BranchID: theirs.ID, Messages: says("n0", "b")}); Repeats(s.Store) {
		_, err = s.Append(background, theirs)
		require.NoError(t, err)
		require.Len(t, s.graph("other").Nodes, 3)
	} else {
		_, err = s.Append(background, theirs)
		s.requireError(err, chat.ErrOtherChat, chat.SubjectMessage, "b")
		require.Len(t, s.graph("other").Nodes, 1)
	}
	before, branches := s.graph("c"), s.branches("c")

	broken := append(says("n1", "n2"), chat.Message{ID: "n3", Name: "user", Data: json.RawMessage(`{`)})
	for _, test := range []struct {
		name    string
		request chat.AppendRequest
		want    error
	}{
		{"a head that moved", chat.AppendRequest{BranchID: main.ID, ExpectedHead: "a", Messages: says("n1")}, chat.ErrHeadMoved},
		{"a head that is there", chat.AppendRequest{BranchID: main.ID, Messages: says("n1")}, chat.ErrHeadMoved},
		{"a head that never was", chat.AppendRequest{BranchID: main.ID, ExpectedHead: "n", Messages: says("n1")}, chat.ErrNotFound},
		{"a known message last", chat.AppendRequest{BranchID: main.ID, ExpectedHead: "b", Messages: says("n1", "n2", "a")}, chat.ErrExists},
		{"a message twice", chat.AppendRequest{BranchID: main.ID, ExpectedHead: "b", Messages: says("n1", "n2", "n1")}, chat.ErrInvalid},
		{"its own parent", chat.AppendRequest{BranchID: main.ID, ExpectedHead: "b", Messages: says("b")}, chat.ErrOwnParent},
		{"a broken message last", chat.AppendRequest{BranchID: main.ID, ExpectedHead: "b", Messages: broken}, chat.ErrInvalid},
		{"no messages", chat.AppendRequest{BranchID: main.ID, ExpectedHead: "b"}, chat.ErrInvalid},
		{"no branch", chat.AppendRequest{Messages: says("n1")}, chat.ErrNotFound},
		{"an unknown branch", chat.AppendRequest{BranchID: "n", Messages: says("n1")}, chat.ErrNotFound},
		{"another chat's branch", chat.AppendRequest{BranchID: theirs.ID, Messages: says("n1")}, chat.ErrOtherChat},
		{"a branch name that is taken", chat.AppendRequest{NewBranch: &chat.Branch{Name: "main", IsActive: true}, Messages: says("n1")}, chat.ErrExists},
		{"a new branch at nothing", chat.AppendRequest{NewBranch: &chat.Branch{Name: "n", HeadMessageID: "n", IsActive: true}, Messages: says("n1")}, chat.ErrNotFound},
		{"a known message on a new branch", chat.AppendRequest{NewBranch: &chat.Branch{Name: "n", IsActive: true}, Messages: says("n1", "b")}, chat.ErrExists},
		{"two branches", chat.AppendRequest{BranchID: main.ID, NewBranch: &chat.Branch{Name: "n"}, Messages: says("n1")}, chat.ErrInvalid},
	} {
		test.request.ChatID = "c"
		_, err := s.Append(background, test.request)
		require.ErrorIs(t, err, test.want, test.name)
		require.Equal(t, before, s.graph("c"), test.name)
		require.Equal(t, branches, s.branches("c"), test.name)
		none, err := s.Message(background, "c", "n1")
		require.NoError(t, err)
		require.Nil(t, none, test.name)
	}
	_, err = s.Append(background, chat.AppendRequest{ChatID: "nobody", BranchID: main.ID, Messages: says("n1")})
	s.requireError(err, chat.ErrNotFound, chat.SubjectChat, "nobody")

	_, err = s.Append(background, chat.AppendRequest{ChatID: "c", BranchID: main.ID, ExpectedHead: "a", Messages: says("n1")})
	var moved *chat.HeadError
	require.ErrorAs(t, err, &moved)
	require.Equal(t, chat.HeadError{BranchID: main.ID, Expected: "a", Actual: "b"}, *moved)
	_, err = s.Append(background, chat.AppendRequest{ChatID: "c", BranchID: main.ID, ExpectedHead: "b", Messages: says("n1")})
	require.NoError(t, err)
}
