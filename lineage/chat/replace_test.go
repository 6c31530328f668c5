package chat_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/lineagetest"
)

// TestRepliesGrowTogether: two writers save a reply again and again while others add to its branch. No state of it is
// lost, the id leads to one of the last, and of the messages that others add each is on the branch or refused.
func TestRepliesGrowTogether(t *testing.T) {
	store := lineagetest.New(t, lineage.Options{})
	chats := chat.On(store)
	for _, id := range []string{"c", "d"} { // with equal ids of messages
		_, err := chats.CreateChat(background, chat.Chat{ID: id, UserID: "of " + id})
		require.NoError(t, err)
		require.NoError(t, chats.AddMessage(background, message(id, "q", "", "?")))
	}
	branch, err := chats.ActiveBranch(background, "c")
	require.NoError(t, err)
	require.NoError(t, chat.MoveAlong(background, store, "c", branch.ID, "q"))
	const saves = 8
	var wg sync.WaitGroup
	errs := make(chan error, 4*saves)
	refused := make(chan string, saves)
	for writer := range 2 {
		wg.Go(func() {
			for n := range saves {
				errs <- chat.Replace(background, store, message("c", "a", "q", fmt.Sprint(writer, " ", n)))
			}
		})
	}
	wg.Go(func() {
		for n := range saves { // from a head that may have moved
			id := fmt.Sprint("late ", n)
			errs <- chats.AddMessage(background, message("c", id, "q", id))
			err := chat.MoveAlong(background, store, "c", branch.ID, chat.Ref(id))
			if head := new(chat.HeadError); err != nil {
				require.ErrorAs(t, err, &head)
				require.Equal(t, chat.Ref("q"), head.Expected)
				refused <- id
			}
		}
	})
	wg.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	require.Len(t, refused, saves-1, "the first one is the head, and the others do not follow it")
	g, err := chats.Graph(background, "c")
	require.NoError(t, err)
	require.Len(t, g.Nodes, 1+2*saves+saves)
	last, err := chats.Message(background, "c", "a")
	require.NoError(t, err)
	require.Contains(t, []string{fmt.Sprint("\"0 ", saves-1, "\""), fmt.Sprint("\"1 ", saves-1, "\"")}, string(last.Data))
	require.Empty(t, onlyBranches(store))

	// The head follows the versions of a reply, and an answer to it ends its growth.
	require.NoError(t, chats.UpdateBranchHead(background, "c", branch.ID, "a"))
	require.NoError(t, chat.Replace(background, store, message("c", "a", "q", "whole")))
	require.NoError(t, chat.MoveAlong(background, store, "c", branch.ID, "a"))
	require.NoError(t, chats.AddMessage(background, message("c", "b", "a", "thanks")))
	require.ErrorIs(t, chat.Replace(background, store, message("c", "a", "q", "more")), chat.ErrExists)
	require.ErrorIs(t, chat.Replace(background, store, message("c", "b", "q", "thanks")), chat.ErrExists)
	require.NoError(t, chat.Replace(background, store, message("c", "a", "q", "whole")), "it is the same")
	require.NoError(t, chats.UpdateBranchHead(background, "c", branch.ID, "late 0"), "a head may go anywhere")

	for id, want := range map[string][]string{"q": {"c", "d"}, "b": {"c"}, g.Nodes[1].ID: {"c"}, "none": nil, "": nil} {
		var found []string
		for c, err := range chat.WithMessage(background, store, id, "") {
			require.NoError(t, err)
			found = append(found, c.ID)
		}
		require.ElementsMatch(t, want, found, id)
	}
	for id, want := range map[string]int{branch.ID: 1, "none": 0} {
		n := 0
		for c, err := range chat.WithBranch(background, store, id) {
			require.NoError(t, err)
			require.Equal(t, "c", c.ID)
			n++
		}
		require.Equal(t, want, n)
	}
}

func message(chatID, id, parent, text string) chat.Message {
	data, _ := json.Marshal(text) // a string always marshals
	return chat.Message{ID: id, ChatID: chatID, ParentID: chat.Ref(parent), Name: "assistant", Type: chat.TypeMessage, Data: data}
}

// TestMoveAlongIsForwards: a head that is moved to where it was before, as by a late repetition, does not take off what
// another program has added since, nor does an earlier state of a reply.
func TestMoveAlongIsForwards(t *testing.T) {
	store, chats, branch := oneChat(t)
	refused := func(to, common, head chat.Ref) {
		t.Helper()
		got := new(chat.HeadError)
		require.ErrorAs(t, chat.MoveAlong(background, store, "c", branch, to), &got)
		require.Equal(t, chat.HeadError{BranchID: branch, Expected: common, Actual: head}, *got)
		b, err := chats.ActiveBranch(background, "c")
		require.NoError(t, err)
		require.Equal(t, head, b.HeadMessageID)
	}
	require.NoError(t, chat.Replace(background, store, message("c", "a", "q", "1")))
	require.NoError(t, chat.MoveAlong(background, store, "c", branch, "a"))
	require.NoError(t, chat.Replace(background, store, message("c", "a", "q", "1 2")))
	b, err := chats.ActiveBranch(background, "c")
	require.NoError(t, err)
	earlier := b.HeadMessageID
	require.NotEqual(t, chat.Ref("a"), earlier)
	require.NoError(t, chat.MoveAlong(background, store, "c", branch, "a"))
	refused(earlier, "q", "a")
	require.NoError(t, chat.Replace(background, store, message("c", "b", "a", "another program's")))
	require.NoError(t, chat.MoveAlong(background, store, "c", branch, "b"))
	require.NoError(t, chat.Replace(background, store, message("c", "a", "q", "1 2")))
	refused("a", "a", "b")
	refused("", "", "b")
	require.NoError(t, chat.MoveAlong(background, store, "c", branch, "b"))
}

// TestReplaceBesideAnAnswer: a reply does not grow any more if, after Replace has looked, an answer to it comes first.
func TestReplaceBesideAnAnswer(t *testing.T) {
	for name, answer := range map[string]func(store *lineage.Store, chats chat.Store, branch string) error{
		"replace": func(store *lineage.Store, _ chat.Store, _ string) error {
			return chat.Replace(background, store, message("c", "b", "a", "thanks"))
		},
		"append": func(_ *lineage.Store, chats chat.Store, branch string) error {
			_, err := chats.Append(background, chat.AppendRequest{ChatID: "c", BranchID: branch, ExpectedHead: "a", Messages: []chat.Message{message("c", "b", "a", "thanks")}})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			store, chats, branch := oneChat(t)
			require.NoError(t, chat.Replace(background, store, message("c", "a", "q", "1")))
			require.NoError(t, chat.MoveAlong(background, store, "c", branch, "a"))
			tries := 0
			err := store.Update(background, func(ctx context.Context, tx *lineage.Tx) error {
				err := chat.Replace(ctx, tx.Store, message("c", "a", "q", "1 2"))
				if tries++; tries == 1 {
					require.NoError(t, err)
					require.NoError(t, answer(store, chats, branch))
				}
				return err
			})
			require.ErrorIs(t, err, chat.ErrExists)
			require.Equal(t, 2, tries)
			b, err := chats.Message(background, "c", "b")
			require.NoError(t, err)
			require.Equal(t, chat.Ref("a"), b.ParentID)
			require.NoError(t, chat.Replace(background, store, message("c", "b", "a", "thanks")), "it is the same")
		})
	}
}

// TestReplaceTakesNoDerivedID: an id that a message has by its place is not given to another one.
func TestReplaceTakesNoDerivedID(t *testing.T) {
	store, chats, branch := oneChat(t)
	require.NoError(t, chat.Replace(background, store, message("c", "a", "q", "1")))
	require.NoError(t, chat.MoveAlong(background, store, "c", branch, "a"))
	require.NoError(t, chat.Replace(background, store, message("c", "a", "q", "1 2")))
	b, err := chats.ActiveBranch(background, "c")
	require.NoError(t, err)
	earlier := string(b.HeadMessageID)
	require.NoError(t, chat.Replace(background, store, message("c", earlier, "q", "1")), "it is the same")
	require.ErrorIs(t, chat.Replace(background, store, message("c", earlier, "q", "1 3")), chat.ErrExists)
	g, err := chats.Graph(background, "c")
	require.NoError(t, err)
	ids := map[string]bool{}
	for _, n := range g.Nodes {
		require.False(t, ids[n.ID], n.ID)
		ids[n.ID] = true
	}
	require.Len(t, ids, 3)
}

// oneChat returns a store with a chat of one message, its head, and the id of its branch.
func oneChat(t *testing.T) (*lineage.Store, chat.Store, string) {
	store := lineagetest.New(t, lineage.Options{})
	chats := chat.On(store)
	_, err := chats.CreateChat(background, chat.Chat{ID: "c", UserID: "ada"})
	require.NoError(t, err)
	require.NoError(t, chats.AddMessage(background, message("c", "q", "", "?")))
	b, err := chats.ActiveBranch(background, "c")
	require.NoError(t, err)
	require.NoError(t, chats.UpdateBranchHead(background, "c", b.ID, "q"))
	return store, chats, b.ID
}
