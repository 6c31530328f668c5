package chattest

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
)

// Repeating returns the chats of a lineage store, in which message ids are unique in a chat only: several chats may
// have messages with the same id. In other stores, an id that another chat has is refused.
func Repeating(chats chat.Store, in *lineage.Store) chat.Store { return repeating{chats, in} }

type repeating struct {
	chat.Store
	in *lineage.Store
}

// Repeats reports whether a store was made by Repeating.
func Repeats(s chat.Store) bool {
	_, ok := s.(repeating)
	return ok
}

// Neighbour is a chat beside another one of another user.
type Neighbour struct {
	ChatID, UserID string
	// Word is in the texts of the chat and in no text of the other one.
	Word string
	// IDs are the messages of the main branch, oldest first. In a store made by Repeating, the other chat has
	// messages with the same ids.
	IDs []string
	// Only is a message that only this chat has. The branch "side" ends with it.
	Only string
	// Side is the id of that branch. Both chats have branches and checkpoints with the same names.
	Side string
}

// Neighbours creates two chats of different users with messages, branches and checkpoints.
func Neighbours(t require.TestingT, s chat.Store) (both [2]Neighbour) {
	over, repeats := s.(repeating)
	for i, user := range []string{"alice", "bob"} {
		n := Neighbour{ChatID: "chat of " + user, UserID: user, Word: "word" + user, Only: "only " + user, Side: "side of " + user}
		for _, id := range []string{"1", "2", "3"} {
			if !repeats {
				id += user
			}
			n.IDs = append(n.IDs, id)
		}
		_, err := s.CreateChat(background, chat.Chat{ID: n.ChatID, UserID: n.UserID})
		require.NoError(t, err)
		parent := chat.Ref("")
		for _, id := range append(slices.Clone(n.IDs), n.Only) {
			m := text(n.ChatID, id, parent, "user", n.Word+" says "+id)
			require.NoError(t, s.AddMessage(background, m))
			parent = chat.Ref(id)
		}
		main, err := s.ActiveBranch(background, n.ChatID)
		require.NoError(t, err)
		require.NoError(t, s.UpdateBranchHead(background, n.ChatID, main.ID, chat.Ref(n.IDs[2])))
		_, err = s.CreateBranch(background, chat.Branch{ID: n.Side, ChatID: n.ChatID, Name: "side", HeadMessageID: chat.Ref(n.Only), CreatedAt: main.CreatedAt + 1})
		require.NoError(t, err)
		if repeats {
			err = over.setCheckpoint(n.ChatID, n.IDs[1])
		} else {
			_, err = s.CreateCheckpoint(background, chat.Checkpoint{ChatID: n.ChatID, Name: "here", MessageID: n.IDs[1]})
		}
		require.NoError(t, err)
		both[i] = n
	}
	return both
}

// setCheckpoint sets the checkpoint "here", whose id is the same in every chat.
func (s repeating) setCheckpoint(chatID, messageID string) error {
	t, err := s.in.FindThread(background, chatID)
	if err != nil {
		return err
	}
	at, err := t.Find(background, messageID)
	if err != nil {
		return err
	}
	_, err = t.SetCheckpoint(background, "here", lineage.CheckpointOptions{At: at.Span, SourceID: "the same"})
	return err
}

// neighbourCall calls a method about a chat, and about a message or a branch if it has an id of one.
type neighbourCall struct {
	// message and branch are set for methods that look up messages and branches by ids.
	message, branch bool
	do              func(ctx context.Context, s *store, n Neighbour, id, branchID string) (any, error)
}

// neighbourCalls has a call for each method of chat.Store.
func neighbourCalls() map[string]neighbourCall {
	fresh := 0
	next := func(n Neighbour) string {
		fresh++
		return fmt.Sprint(n.ChatID, " new ", fresh)
	}
	said := func(n Neighbour, parent string) chat.Message {
		id := next(n)
		return text(n.ChatID, id, chat.Ref(parent), "user", n.Word+" says "+id)
	}
	return map[string]neighbourCall{
		"CreateChat": {do: func(ctx context.Context, s *store, n Neighbour, _, _ string) (any, error) {
			return s.CreateChat(ctx, chat.Chat{ID: next(n), UserID: n.UserID})
		}},
		"UpsertChat": {do: func(ctx context.Context, s *store, n Neighbour, _, _ string) (any, error) {
			return s.UpsertChat(ctx, chat.Chat{ID: n.ChatID, UserID: n.UserID})
		}},
		"Chat": {do: func(ctx context.Context, s *store, n Neighbour, _, _ string) (any, error) {
			return s.Chat(ctx, n.ChatID)
		}},
		"UpdateChat": {do: func(ctx context.Context, s *store, n Neighbour, _, _ string) (any, error) {
			return s.UpdateChat(ctx, n.ChatID, chat.ChatUpdate{Title: &n.Word})
		}},
		"ChangeChat": {do: func(ctx context.Context, s *store, n Neighbour, _, _ string) (any, error) {
			return s.ChangeChat(ctx, n.ChatID, func(chat.Chat) (chat.ChatUpdate, error) { return chat.ChatUpdate{Title: &n.Word}, nil })
		}},
		"ListChats": {do: func(ctx context.Context, s *store, n Neighbour, _, _ string) (any, error) {
			return all(s.ListChats(ctx, chat.ListOptions{UserID: n.UserID}))
		}},
		"DeleteChat": {do: func(ctx context.Context, s *store, n Neighbour, _, _ string) (any, error) {
			return s.DeleteChat(ctx, next(n), chat.DeleteOptions{})
		}},
		"AddMessage": {message: true, do: func(ctx context.Context, s *store, n Neighbour, id, _ string) (any, error) {
			return nil, s.AddMessage(ctx, said(n, id))
		}},
		"Message": {message: true, do: func(ctx context.Context, s *store, n Neighbour, id, _ string) (any, error) {
			return s.Message(ctx, n.ChatID, id)
		}},
		"MessageChain": {message: true, do: func(ctx context.Context, s *store, n Neighbour, id, _ string) (any, error) {
			return all(s.MessageChain(ctx, n.ChatID, id))
		}},
		"Ancestors": {message: true, do: func(ctx context.Context, s *store, n Neighbour, id, _ string) (any, error) {
			return all(s.Ancestors(ctx, n.ChatID, id))
		}},
		"CountMessages": {message: true, do: func(ctx context.Context, s *store, n Neighbour, id, _ string) (any, error) {
			return s.CountMessages(ctx, n.ChatID, id)
		}},
		"HasChildren": {message: true, do: func(ctx context.Context, s *store, n Neighbour, id, _ string) (any, error) {
			return s.HasChildren(ctx, n.ChatID, id)
		}},
		"Messages": {do: func(ctx context.Context, s *store, n Neighbour, _, _ string) (any, error) {
			return all(s.Messages(ctx, n.ChatID))
		}},
		"CreateBranch": {message: true, do: func(ctx context.Context, s *store, n Neighbour, id, _ string) (any, error) {
			return s.CreateBranch(ctx, chat.Branch{ChatID: n.ChatID, Name: next(n), HeadMessageID: chat.Ref(id)})
		}},
		"Branch": {do: func(ctx context.Context, s *store, n Neighbour, _, _ string) (any, error) {
			return s.Branch(ctx, n.ChatID, "side")
		}},
		"ActiveBranch": {do: func(ctx context.Context, s *store, n Neighbour, _, _ string) (any, error) {
			return s.ActiveBranch(ctx, n.ChatID)
		}},
		"SetActiveBranch": {branch: true, do: func(ctx context.Context, s *store, n Neighbour, _, branchID string) (any, error) {
			return nil, s.SetActiveBranch(ctx, n.ChatID, branchID)
		}},
		"UpdateBranchHead": {message: true, branch: true, do: func(ctx context.Context, s *store, n Neighbour, id, branchID string) (any, error) {
			return nil, s.UpdateBranchHead(ctx, n.ChatID, branchID, chat.Ref(id))
		}},
		"ListBranches": {do: func(ctx context.Context, s *store, n Neighbour, _, _ string) (any, error) {
			return s.ListBranches(ctx, n.ChatID)
		}},
		"BranchNames": {do: func(ctx context.Context, s *store, n Neighbour, _, _ string) (any, error) {
			return s.BranchNames(ctx, n.ChatID, "", 1000)
		}},
		"TakenBranchNames": {do: func(ctx context.Context, s *store, n Neighbour, _, _ string) (any, error) {
			return s.TakenBranchNames(ctx, n.ChatID, []string{chat.MainBranch, "theirs"})
		}},
		"Summaries": {branch: true, do: func(ctx context.Context, s *store, n Neighbour, _, branchID string) (any, error) {
			return s.Summaries(ctx, n.ChatID, branchID)
		}},
		"CreateCheckpoint": {message: true, do: func(ctx context.Context, s *store, n Neighbour, id, _ string) (any, error) {
			return s.CreateCheckpoint(ctx, chat.Checkpoint{ChatID: n.ChatID, Name: "there", MessageID: id})
		}},
		"Checkpoint": {do: func(ctx context.Context, s *store, n Neighbour, _, _ string) (any, error) {
			return s.Checkpoint(ctx, n.ChatID, "here")
		}},
		"ListCheckpoints": {do: func(ctx context.Context, s *store, n Neighbour, _, _ string) (any, error) {
			return s.ListCheckpoints(ctx, n.ChatID)
		}},
		"DeleteCheckpoint": {do: func(ctx context.Context, s *store, n Neighbour, _, _ string) (any, error) {
			return nil, s.DeleteCheckpoint(ctx, n.ChatID, "there")
		}},
		"SearchMessages": {do: func(ctx context.Context, s *store, n Neighbour, _, _ string) (any, error) {
			if !s.config.Search {
				return nil, nil
			}
			return s.SearchMessages(ctx, n.ChatID, "says", chat.SearchOptions{Limit: 1000})
		}},
		"Graph": {do: func(ctx context.Context, s *store, n Neighbour, _, _ string) (any, error) {
			return s.Graph(ctx, n.ChatID)
		}},
		"Append": {message: true, branch: true, do: func(ctx context.Context, s *store, n Neighbour, id, branchID string) (any, error) {
			if branchID != n.Side { // of the other chat
				return s.Append(ctx, chat.AppendRequest{ChatID: n.ChatID, BranchID: branchID, ExpectedHead: chat.Ref(id), Messages: []chat.Message{said(n, "")}})
			}
			name := next(n)
			return s.Append(ctx, chat.AppendRequest{
				ChatID: n.ChatID, NewBranch: &chat.Branch{Name: name, HeadMessageID: chat.Ref(id)}, Messages: []chat.Message{said(n, "")},
			})
		}},
	}
}

// testNeighbours calls every method of chat.Store on two chats of different users with the same ids. None
// reads or changes the other chat, and ids that only the other chat has are refused.
func testNeighbours(t *testing.T, s *store) {
	both := Neighbours(t, s.Store)
	calls := neighbourCalls()
	methods := reflect.TypeFor[chat.Store]()
	for i := range methods.NumMethod() {
		require.Contains(t, calls, methods.Method(i).Name, "neighbourCalls has a call for each method")
	}
	require.Len(t, calls, methods.NumMethod())
	for i, n := range both {
		other := both[1-i]
		before := s.everything(other)
		for _, name := range slices.Sorted(maps.Keys(calls)) {
			call := calls[name]
			for _, id := range append(slices.Clone(n.IDs), n.Only) {
				got, err := call.do(background, s, n, id, n.Side)
				require.NoError(t, err, "%s of %q in %q", name, id, n.ChatID)
				found, err := json.Marshal(got)
				require.NoError(t, err)
				require.NotContains(t, string(found), other.Word, "%s of %q in %q", name, id, n.ChatID)
				if m, ok := got.(*chat.Message); ok {
					require.Contains(t, string(m.Data), n.Word+" says "+id)
				}
			}
			if call.message {
				_, err := call.do(background, s, n, other.Only, n.Side)
				require.ErrorIs(t, err, chat.ErrOtherChat, name)
				s.requireError(err, chat.ErrOtherChat, chat.SubjectMessage, other.Only)
			}
			if call.branch {
				_, err := call.do(background, s, n, n.Only, other.Side)
				s.requireError(err, chat.ErrOtherChat, chat.SubjectBranch, other.Side)
			}
		}
		require.Equal(t, before, s.everything(other), "the other chat has not changed")
	}
	_, err := s.CreateBranch(background, chat.Branch{ID: both[1].Side, ChatID: both[0].ChatID, Name: "theirs"})
	s.requireError(err, chat.ErrExists, chat.SubjectBranch, both[1].Side)
	deleted, err := s.DeleteChat(background, both[0].ChatID, chat.DeleteOptions{})
	require.NoError(t, err)
	require.True(t, deleted)
	for _, id := range both[1].IDs {
		m, err := s.Message(background, both[1].ChatID, id)
		require.NoError(t, err)
		require.Contains(t, string(m.Data), both[1].Word+" says "+id)
	}
}

// everything returns what can be read of a chat.
func (s *store) everything(n Neighbour) []any {
	c, err := s.Chat(background, n.ChatID)
	require.NoError(s.t, err)
	list := []any{*c, s.graph(n.ChatID), s.branches(n.ChatID)}
	for _, node := range s.graph(n.ChatID).Nodes {
		list = append(list, collect(s.t, s.MessageChain(background, n.ChatID, node.ID)))
	}
	return list
}

// all returns the values of a sequence, up to an error.
func all[T any](sequence iter.Seq2[T, error]) (list []T, err error) {
	for v, err := range sequence {
		if err != nil {
			return list, err
		}
		list = append(list, v)
	}
	return list, nil
}
