package chat_test

import (
	"context"
	"iter"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/storetest"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
)

var background = context.Background()

func collect[T any](t testing.TB, sequence iter.Seq2[T, error]) []T {
	var all []T
	for v, err := range sequence {
		require.NoError(t, err)
		all = append(all, v)
	}
	return all
}

// A thread that was made through the library reads as a chat and goes on as one.
func TestThreadsAreChats(t *testing.T) {
	store := storetest.New(t)
	thread, err := store.CreateThread(background, lineage.ThreadOptions{UserID: "ada", Title: "by hand"})
	require.NoError(t, err)
	main, err := thread.Active(background)
	require.NoError(t, err)
	_, err = main.Extend(background, lineage.User("hello"), lineage.Assistant("hi").WithID("mine"))
	require.NoError(t, err)
	_, err = main.Extend(background, lineage.Together(lineage.User("see this"), lineage.Item{Kind: lineage.Asset, Filename: "a.png", Type: "image/png", Body: []byte{1}}))
	require.NoError(t, err)

	chats := chat.On(store)
	id := thread.ID().String()
	listed := collect(t, chats.ListChats(background, chat.ListOptions{}))
	require.Len(t, listed, 1)
	require.Equal(t, id, listed[0].ID)
	require.Equal(t, 3, listed[0].MessageCount)
	_, err = chats.CreateChat(background, chat.Chat{ID: id, UserID: "ada"})
	require.ErrorIs(t, err, chat.ErrExists)

	messages := collect(t, chats.Messages(background, id))
	require.Len(t, messages, 3)
	require.JSONEq(t, `{"id":"`+messages[0].ID+`","role":"user","parts":[{"type":"text","text":"hello"}]}`, string(messages[0].Data))
	require.Equal(t, "user", messages[2].Name)
	require.Contains(t, string(messages[2].Data), `"type":"file","mediaType":"image/png","filename":"a.png"`)
	for i, m := range messages {
		got, err := chats.Message(background, id, m.ID)
		require.NoError(t, err)
		require.Equal(t, m, *got)
		has, err := chats.HasChildren(background, id, m.ID)
		require.NoError(t, err)
		require.Equal(t, i < 2, has)
	}
	branch, err := chats.ActiveBranch(background, id)
	require.NoError(t, err)
	require.Equal(t, chat.Ref(messages[2].ID), branch.HeadMessageID)

	_, err = chats.Append(background, chat.AppendRequest{
		ChatID: id, BranchID: branch.ID, ExpectedHead: branch.HeadMessageID,
		Messages: []chat.Message{{ID: "next", Name: "user", Data: []byte(`{}`)}},
	})
	require.NoError(t, err)
	require.Len(t, collect(t, chats.MessageChain(background, id, "next")), 4)
	require.Len(t, collect(t, chats.MessageChain(background, id, messages[1].ID)), 2)
	entries, err := main.All(background)
	require.NoError(t, err)
	require.Equal(t, "next", entries[len(entries)-1].SourceID)
}

// What an agent does to a chat through the library shows in it: an answer at its
// end, a branch from its middle.
func TestChatsAreThreads(t *testing.T) {
	store := storetest.New(t)
	chats := chat.On(store)
	_, err := chats.CreateChat(background, chat.Chat{ID: "c", UserID: "ada"})
	require.NoError(t, err)
	branch, err := chats.ActiveBranch(background, "c")
	require.NoError(t, err)
	_, err = chats.Append(background, chat.AppendRequest{ChatID: "c", BranchID: branch.ID, Messages: []chat.Message{
		{ID: "a", Name: "user", Data: []byte(`"one"`)}, {ID: "b", Name: "assistant", Data: []byte(`"two"`)},
	}})
	require.NoError(t, err)

	thread, err := store.FindThread(background, "c")
	require.NoError(t, err)
	main, err := thread.BranchContext(background, lineage.MainBranch)
	require.NoError(t, err)
	entries, err := main.All(background)
	require.NoError(t, err)
	require.Len(t, entries, 2)
	side, err := thread.CreateBranch(background, "side", lineage.BranchOptions{At: entries[0].Span})
	require.NoError(t, err)
	_, err = side.Extend(background, lineage.User("aside"))
	require.NoError(t, err)
	_, err = main.Extend(background, lineage.User("three"))
	require.NoError(t, err)
	named, err := thread.BranchContext(background, "side")
	require.NoError(t, err)
	require.NoError(t, thread.NameBranch(background, "renamed", named))

	messages := collect(t, chats.Messages(background, "c"))
	require.Len(t, messages, 3)
	require.Equal(t, "b", messages[1].ID)
	require.Equal(t, chat.Ref("b"), messages[2].ParentID)
	renamed, err := chats.Branch(background, "c", "renamed")
	require.NoError(t, err)
	require.NoError(t, chats.SetActiveBranch(background, "c", renamed.ID))
	require.Len(t, collect(t, chats.Messages(background, "c")), 2)
	graph, err := chats.Graph(background, "c")
	require.NoError(t, err)
	require.Len(t, graph.Nodes, 4)
	for id, want := range map[string]bool{"a": true, "b": true, string(renamed.HeadMessageID): false} {
		has, err := chats.HasChildren(background, "c", id)
		require.NoError(t, err)
		require.Equal(t, want, has, id)
	}
}

// A fork into another thread shares the history, and each has its own messages.
func TestSharedHistory(t *testing.T) {
	store := storetest.New(t)
	chats := chat.On(store)
	_, err := chats.CreateChat(background, chat.Chat{ID: "c", UserID: "ada"})
	require.NoError(t, err)
	branch, err := chats.ActiveBranch(background, "c")
	require.NoError(t, err)
	_, err = chats.Append(background, chat.AppendRequest{ChatID: "c", BranchID: branch.ID, Messages: []chat.Message{{ID: "a", Name: "user", Data: []byte(`"one"`)}}})
	require.NoError(t, err)
	from, err := store.FindThread(background, "c")
	require.NoError(t, err)
	main, err := from.Active(background)
	require.NoError(t, err)
	tip, err := main.Tip(background)
	require.NoError(t, err)
	other, err := store.CreateThread(background, lineage.ThreadOptions{SourceID: "other"})
	require.NoError(t, err)
	fork, err := other.CreateBranch(background, "fork", lineage.BranchOptions{At: tip, Switch: true})
	require.NoError(t, err)
	_, err = fork.Extend(background, lineage.User("more"))
	require.NoError(t, err)

	messages := collect(t, chats.Messages(background, "other"))
	require.Len(t, messages, 2)
	require.Equal(t, "other", messages[0].ChatID)
	require.True(t, strings.HasPrefix(messages[0].ID, other.ID().String()))
	has, err := chats.HasChildren(background, "c", "a")
	require.NoError(t, err)
	require.False(t, has, "the other chat's child is not this one's")
	original, err := chats.Message(background, "c", "a")
	require.NoError(t, err)
	require.Equal(t, "c", original.ChatID)

	deleted, err := chats.DeleteChat(background, "c", chat.DeleteOptions{})
	require.NoError(t, err)
	require.True(t, deleted)
	require.Equal(t, messages, collect(t, chats.Messages(background, "other")), "what is shared stays")
	require.Empty(t, collect(t, store.Verify(background, lineage.VerifyOptions{Deep: true})))
}

func TestErasedMessage(t *testing.T) {
	store := storetest.New(t)
	chats := chat.On(store)
	_, err := chats.CreateChat(background, chat.Chat{ID: "c", UserID: "ada"})
	require.NoError(t, err)
	require.NoError(t, chats.AddMessage(background, chat.Message{ID: "a", ChatID: "c", Name: "user", Data: []byte(`"secret"`)}))
	thread, err := store.FindThread(background, "c")
	require.NoError(t, err)
	for e, err := range thread.Spans(background) {
		require.NoError(t, err)
		require.NoError(t, store.Erase(background, e.Content))
	}
	got, err := chats.Message(background, "c", "a")
	require.NoError(t, err)
	require.JSONEq(t, `null`, string(got.Data))
}

// Any text can be asked for.
func FuzzIDs(f *testing.F) {
	store := storetest.New(f)
	chats := chat.On(store)
	thread, err := store.CreateThread(background, lineage.ThreadOptions{UserID: "ada"})
	require.NoError(f, err)
	main, err := thread.Active(background)
	require.NoError(f, err)
	spans, err := main.Extend(background, lineage.User("hello"))
	require.NoError(f, err)
	known := thread.ID().String() + "/" + spans[0].String()
	m, err := chats.Message(background, thread.ID().String(), known)
	require.NoError(f, err)
	require.Equal(f, known, m.ID)
	for _, seed := range []string{"", "x", known, known + "0", known[:len(known)-1], strings.ToUpper(known), thread.ID().String(), main.ID().String(), "/", "\xff\x00", "//1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, id string) {
		m, err := chats.Message(background, thread.ID().String(), id)
		require.NoError(t, err)
		require.Equal(t, id == known, m != nil)
		c, err := chats.Chat(background, id)
		require.NoError(t, err)
		require.Equal(t, id == thread.ID().String(), c != nil)
		_, err = chats.HasChildren(background, thread.ID().String(), id)
		require.NoError(t, err)
		require.Error(t, chats.UpdateBranchHead(background, thread.ID().String(), id, "nothing"))
	})
}
