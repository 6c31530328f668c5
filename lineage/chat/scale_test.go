package chat_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/backend/backendtest"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/structure"
)

// manyBranches makes a chat in which n branches end with a message of their own, and
// n other chats.
func manyBranches(t testing.TB, n int) (chat.Store, *backendtest.Counting) {
	t.Helper()
	store, err := lineage.Open(background, t.TempDir(), lineage.Options{Durability: lineage.Normal})
	require.NoError(t, err)
	counting := backendtest.NewCounting(write.Of(store).Engine())
	chats := chat.On(lineage.New(counting))
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	_, err = chats.CreateChat(background, chat.Chat{ID: "c", UserID: "ada"})
	require.NoError(t, err)
	main, err := chats.ActiveBranch(background, "c")
	require.NoError(t, err)
	_, err = chats.Append(background, chat.AppendRequest{ChatID: "c", BranchID: main.ID, Messages: []chat.Message{says("one"), says("two")}})
	require.NoError(t, err)
	thread, err := store.FindThread(background, "c")
	require.NoError(t, err)
	active, err := thread.Active(background)
	require.NoError(t, err)
	at, err := active.Tip(background)
	require.NoError(t, err)
	var others []structure.Record
	for i := range n {
		id := fmt.Sprint("m", i)
		_, err := chats.Append(background, chat.AppendRequest{
			ChatID: "c", NewBranch: &chat.Branch{Name: fmt.Sprintf("main-v%d", i+2), HeadMessageID: "one"}, Messages: []chat.Message{says(id)},
		})
		require.NoError(t, err)
		id = fmt.Sprint("other ", i)
		others = append(others, &structure.Thread{ID: write.SourceThread(id), SourceID: id},
			&structure.Checkpoint{ID: structure.NewID[structure.CheckpointID](), Thread: write.SourceThread("c"), Name: id, Span: at})
	}
	_, err = write.Of(store).Engine().Apply(background, &structure.Commit{Records: others}, backend.Options{})
	require.NoError(t, err)
	return chats, counting
}

func says(id string) chat.Message { return chat.Message{ID: id, Name: "user", Data: []byte(`{}`)} }

// No operation on one thing looks at all branches, checkpoints, messages or chats.
func TestOperationsDoNotGrow(t *testing.T) {
	backendtest.RequireScale(t, func(n int) map[string]int64 {
		chats, counting := manyBranches(t, n)
		costs := make(map[string]int64)
		title := "title"
		var branch chat.Branch
		for _, o := range []struct {
			name string
			do   func() error
		}{
			{"create a chat", func() error { _, err := chats.CreateChat(background, chat.Chat{ID: "d", UserID: "bob"}); return err }},
			{"list chats", func() error {
				for _, err := range chats.ListChats(background, chat.ListOptions{UserID: "bob", Limit: 1}) {
					return err
				}
				return nil
			}},
			{"list chats by metadata", func() error {
				o := chat.ListOptions{Metadata: []chat.MetadataFilter{{Key: "none", Value: "x"}}}
				for _, err := range chats.ListChats(background, o) {
					return err
				}
				return nil
			}},
			{"upsert", func() error { _, err := chats.UpsertChat(background, chat.Chat{ID: "c", UserID: "ada"}); return err }},
			{"get", func() error { _, err := chats.Chat(background, "c"); return err }},
			{"update", func() error { _, err := chats.UpdateChat(background, "c", chat.ChatUpdate{Title: &title}); return err }},
			{"delete a chat", func() error { _, err := chats.DeleteChat(background, "d", chat.DeleteOptions{}); return err }},
			{"add a message", func() error {
				return chats.AddMessage(background, chat.Message{ID: "new", ChatID: "c", ParentID: "two", Name: "user", Data: []byte(`{}`)})
			}},
			{"message", func() error { _, err := chats.Message(background, "c", "new"); return err }},
			{"children of a leaf", func() error { _, err := chats.HasChildren(background, "c", "new"); return err }},
			{"children of another leaf", func() error { _, err := chats.HasChildren(background, "c", "m1"); return err }},
			{"children of all", func() error { _, err := chats.HasChildren(background, "c", "one"); return err }},
			{"count", func() error { _, err := chats.CountMessages(background, "c", "new"); return err }},
			{"name a branch", func() error {
				name, err := chat.NextBranchName(background, chats, "c", "main", nil)
				branch = chat.Branch{ChatID: "c", Name: name, HeadMessageID: "new"}
				return err
			}},
			{"create a branch", func() (err error) { branch, err = chats.CreateBranch(background, branch); return err }},
			{"branch", func() error { _, err := chats.Branch(background, "c", "main"); return err }},
			{"activate", func() error { return chats.SetActiveBranch(background, "c", branch.ID) }},
			{"active branch", func() error { _, err := chats.ActiveBranch(background, "c"); return err }},
			{"messages", func() error {
				for _, err := range chats.Messages(background, "c") {
					if err != nil {
						return err
					}
				}
				return nil
			}},
			{"append", func() error {
				_, err := chats.Append(background, chat.AppendRequest{ChatID: "c", BranchID: branch.ID, ExpectedHead: "new", Messages: []chat.Message{says("newer")}})
				return err
			}},
			{"append to a new branch", func() error {
				_, err := chats.Append(background, chat.AppendRequest{
					ChatID: "c", NewBranch: &chat.Branch{Name: "side", HeadMessageID: "one"}, Messages: []chat.Message{says("aside")},
				})
				return err
			}},
			{"update a head", func() error { return chats.UpdateBranchHead(background, "c", branch.ID, "two") }},
			{"create a checkpoint", func() error {
				_, err := chats.CreateCheckpoint(background, chat.Checkpoint{ChatID: "c", Name: "here", MessageID: "two"})
				return err
			}},
			{"checkpoint", func() error { _, err := chats.Checkpoint(background, "c", "here"); return err }},
			{"delete a checkpoint", func() error { return chats.DeleteCheckpoint(background, "c", "here") }},
		} {
			costs[o.name] = counting.Cost(func() { require.NoError(t, o.do(), o.name) })
		}
		return costs
	})
}

// In a thread that the library or an import made, messages of the active branch are
// found without a look at the others.
func TestForeignMessagesDoNotGrow(t *testing.T) {
	backendtest.RequireScale(t, func(n int) map[string]int64 {
		store, err := lineage.Open(background, t.TempDir(), lineage.Options{Durability: lineage.Normal})
		require.NoError(t, err)
		defer store.Close()
		thread, err := store.CreateThread(background, lineage.ThreadOptions{SourceID: "c", UserID: "ada"})
		require.NoError(t, err)
		main, err := thread.Active(background)
		require.NoError(t, err)
		_, err = main.Extend(background, lineage.User("one"), lineage.Assistant("two"))
		require.NoError(t, err)
		for i := range n {
			_, err := thread.CreateBranch(background, fmt.Sprint("b", i), lineage.BranchOptions{})
			require.NoError(t, err)
		}
		counting := backendtest.NewCounting(write.Of(store).Engine())
		chats := chat.On(lineage.New(counting))
		branch, err := chats.ActiveBranch(background, "c")
		require.NoError(t, err)
		return map[string]int64{
			"message": counting.Cost(func() {
				m, err := chats.Message(background, "c", string(branch.HeadMessageID))
				require.NoError(t, err)
				require.NotNil(t, m)
			}),
			"append": counting.Cost(func() {
				_, err := chats.Append(background, chat.AppendRequest{
					ChatID: "c", BranchID: branch.ID, ExpectedHead: branch.HeadMessageID, Messages: []chat.Message{says("next")},
				})
				require.NoError(t, err)
			}),
		}
	})
}

// Loading a chat again looks each message up and reads its span, most of them together. Only if the store has more than
// the chat, the spans are read once more.
func TestLoadAgainReadsOnce(t *testing.T) {
	store, err := lineage.Open(background, t.TempDir(), lineage.Options{Durability: lineage.Normal})
	require.NoError(t, err)
	defer store.Close()
	counting := backendtest.NewCounting(write.Of(store).Engine())
	messages := make([]chat.Message, 3000)
	for i := range messages {
		messages[i] = says(fmt.Sprint("m", i))
		if i > 0 {
			messages[i].ParentID = chat.Ref(messages[i-1].ID)
		}
	}
	load := func() {
		_, err := chat.Load(background, lineage.New(counting), chat.Loading{
			Chat: chat.Chat{ID: "c", CreatedAt: 1, UpdatedAt: 2},
			Messages: func(yield func(chat.Message, error) bool) {
				for _, m := range messages {
					if !yield(m, nil) {
						return
					}
				}
			},
			Branches: []chat.Branch{{Name: "main", HeadMessageID: chat.Ref(messages[len(messages)-1].ID), CreatedAt: 1}},
		})
		require.NoError(t, err)
	}
	load()
	for i := range 2 {
		// A lookup is a call and an element, a span an element.
		require.LessOrEqual(t, counting.Cost(load), int64(len(messages)*(33+10*i)/10))
		own := says("own")
		own.ChatID, own.ParentID = "c", chat.Ref(messages[len(messages)/2].ID)
		require.NoError(t, chat.On(store).AddMessage(background, own))
	}
}
