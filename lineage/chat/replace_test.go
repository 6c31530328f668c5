package chat_test

import (
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
		for c, err := range chat.WithMessage(background, store, id) {
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
