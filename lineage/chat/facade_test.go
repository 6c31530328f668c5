package chat_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/storetest"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend/backendtest"
	"github.com/lineage-store/lineage/lineage/chat"
)

func add(t testing.TB, s chat.Store, chatID, id, parent string) {
	t.Helper()
	require.NoError(t, s.AddMessage(background, chat.Message{ID: id, ChatID: chatID, ParentID: chat.Ref(parent), Name: "user", Data: []byte(`"` + id + `"`), CreatedAt: 1}))
}

// What chats add the library finds, and what the library adds with an id chats find under it,
// on a branch or none, in their own threads and in those of the library.
func TestOneHistory(t *testing.T) {
	for _, made := range []string{"by chats", "by the library", "by the library, kept"} {
		t.Run(made, func(t *testing.T) {
			store := storetest.New(t)
			chats := chat.On(store)
			if made == "by chats" {
				_, err := chats.CreateChat(background, chat.Chat{ID: "c", UserID: "ada"})
				require.NoError(t, err)
			} else {
				_, err := store.CreateThread(background, lineage.ThreadOptions{SourceID: "c", UserID: "ada", Keep: made != "by the library"})
				require.NoError(t, err)
			}
			thread, err := store.FindThread(background, "c")
			require.NoError(t, err)
			main, err := thread.Active(background)
			require.NoError(t, err)
			branch, err := chats.ActiveBranch(background, "c")
			require.NoError(t, err)

			spans, err := main.Extend(background, lineage.User("one").WithID("x1"), lineage.Assistant("two"))
			require.NoError(t, err)
			m, err := chats.Message(background, "c", "x1")
			require.NoError(t, err)
			require.Equal(t, "x1", m.ID)
			require.Contains(t, string(m.Data), `"text":"one"`)
			branch, err = chats.Branch(background, "c", branch.Name)
			require.NoError(t, err)
			_, err = chats.Append(background, chat.AppendRequest{ChatID: "c", BranchID: branch.ID, ExpectedHead: branch.HeadMessageID, Messages: []chat.Message{says("x3")}})
			require.NoError(t, err)
			together, err := main.Extend(background, lineage.Together(lineage.Item{Kind: lineage.Asset, Filename: "a", Body: []byte{1}}, lineage.User("see").WithID("x4")))
			require.NoError(t, err)
			add(t, chats, "c", "aside", "x1")
			add(t, chats, "c", "root", "")
			hung, err := thread.AddAfter(background, together[0], lineage.User("behind").WithID("x5"))
			require.NoError(t, err)

			for id, at := range map[string]lineage.SpanRef{"x1": spans[0], "x4": together[0], "x5": hung[0]} {
				e, err := thread.Find(background, id)
				require.NoError(t, err)
				require.Equal(t, at, e.Span)
			}
			for _, id := range []string{"x1", "x3", "x4", "x5", "aside", "root"} {
				e, err := thread.Find(background, id)
				require.NoError(t, err, id)
				m, err := chats.Message(background, "c", id)
				require.NoError(t, err)
				require.Equal(t, id, m.ID)
				n, err := chats.CountMessages(background, "c", id)
				require.NoError(t, err)
				require.EqualValues(t, e.Position, n)
				require.ErrorIs(t, chats.AddMessage(background, chat.Message{ID: id, ChatID: "c", Name: "user", Data: []byte(`9`)}), chat.ErrExists)
				_, err = thread.AddAfter(background, lineage.SpanRef{}, lineage.User("again").WithID(id))
				require.ErrorIs(t, err, lineage.ErrExists)
			}
			var chain []string
			for _, m := range collect(t, chats.MessageChain(background, "c", "x5")) {
				chain = append(chain, m.ID)
			}
			require.Equal(t, []string{"x1", string(branch.HeadMessageID), "x3", "x4", "x5"}, chain)
			has, err := chats.HasChildren(background, "c", "x4")
			require.NoError(t, err)
			require.True(t, has)

			before, err := chats.Graph(background, "c")
			require.NoError(t, err)
			require.Len(t, before.Nodes, 7)
			_, err = store.Collect(background, lineage.CollectOptions{KeepUnused: -1, KeepReflog: -1})
			require.NoError(t, err)
			after, err := chats.Graph(background, "c")
			require.NoError(t, err)
			require.Equal(t, before, after, "a collection keeps messages on no branch")
			require.NoError(t, onlyBranches(store))
			require.Empty(t, collect(t, store.Verify(background, lineage.VerifyOptions{Deep: true})))
		})
	}
}

// Every id is free again when its chat was deleted, also before what was deleted is
// collected, and what is made under it has nothing of the earlier.
func TestIDsAgain(t *testing.T) {
	for _, collected := range []bool{false, true} {
		t.Run(fmt.Sprint("collected=", collected), func(t *testing.T) {
			store := storetest.New(t)
			chats := chat.On(store)
			for round := range 4 {
				_, err := chats.CreateChat(background, chat.Chat{ID: "c", UserID: "ada"})
				require.NoError(t, err)
				main, err := chats.ActiveBranch(background, "c")
				require.NoError(t, err)
				parent := ""
				if round%2 == 1 { // not always the same
					add(t, chats, "c", "first", "")
					parent = "first"
				}
				add(t, chats, "c", "m", parent)
				_, err = chats.CreateBranch(background, chat.Branch{ID: "b", ChatID: "c", Name: "side", HeadMessageID: "m"})
				require.NoError(t, err)
				_, err = chats.Append(background, chat.AppendRequest{ChatID: "c", BranchID: "b", ExpectedHead: "m", Messages: []chat.Message{says("n")}})
				require.NoError(t, err)
				k, err := chats.CreateCheckpoint(background, chat.Checkpoint{ID: "k", ChatID: "c", Name: "here", MessageID: "n"})
				require.NoError(t, err)
				require.Equal(t, "k", k.ID)
				for id, err := range map[string]error{
					"b": func() error {
						_, err := chats.CreateBranch(background, chat.Branch{ID: "b", ChatID: "c", Name: "other"})
						return err
					}(),
					"k": func() error {
						_, err := chats.CreateCheckpoint(background, chat.Checkpoint{ID: "k", ChatID: "c", Name: "other", MessageID: "n"})
						return err
					}(),
				} {
					require.ErrorIs(t, err, chat.ErrExists, id)
				}
				g, err := chats.Graph(background, "c")
				require.NoError(t, err)
				require.Len(t, g.Nodes, 2+round%2)
				n, err := chats.CountMessages(background, "c", "n")
				require.NoError(t, err)
				require.Equal(t, 2+round%2, n)
				infos := collect(t, chats.ListChats(background, chat.ListOptions{}))
				require.Len(t, infos, 1)
				require.Equal(t, 2+round%2, infos[0].MessageCount)
				require.NoError(t, chats.SetActiveBranch(background, "c", "b"))
				require.NoError(t, chats.UpdateBranchHead(background, "c", "b", ""))
				require.NoError(t, chats.DeleteCheckpoint(background, "c", "here"))
				_, err = chats.CreateCheckpoint(background, chat.Checkpoint{ID: "k", ChatID: "c", Name: "again", MessageID: "m"})
				require.NoError(t, err, "of a checkpoint that was deleted")

				// The id of a branch is taken in another chat, and after this one is deleted it is not.
				other := fmt.Sprint("other", round)
				_, err = chats.CreateChat(background, chat.Chat{ID: other, UserID: "ada"})
				require.NoError(t, err)
				add(t, chats, other, "m", "")
				_, err = chats.CreateBranch(background, chat.Branch{ID: main.ID, ChatID: other, Name: "b"})
				require.ErrorIs(t, err, chat.ErrExists)
				deleted, err := chats.DeleteChat(background, "c", chat.DeleteOptions{})
				require.NoError(t, err)
				require.True(t, deleted)
				if collected {
					_, err := store.Collect(background, lineage.CollectOptions{KeepUnused: -1, KeepReflog: -1})
					require.NoError(t, err)
				}
				for _, id := range []string{"n", "first"} {
					m, err := chats.Message(background, "c", id)
					require.NoError(t, err)
					require.Nil(t, m)
				}
				_, err = chats.Message(background, "c", "m")
				require.ErrorIs(t, err, chat.ErrOtherChat, "it has one of its own")
				m, err := chats.Message(background, other, "m")
				require.NoError(t, err)
				require.JSONEq(t, `"m"`, string(m.Data))
				_, err = chats.CreateBranch(background, chat.Branch{ID: "b", ChatID: other, Name: "side", HeadMessageID: "m"})
				require.NoError(t, err)
				_, err = chats.CreateCheckpoint(background, chat.Checkpoint{ID: "k", ChatID: other, Name: "here", MessageID: "m"})
				require.NoError(t, err)
				require.NoError(t, onlyBranches(store))
				_, err = chats.DeleteChat(background, other, chat.DeleteOptions{})
				require.NoError(t, err)
			}
			require.Empty(t, collect(t, store.Verify(background, lineage.VerifyOptions{Deep: true})))
		})
	}
}

// Where messages of several threads have an id, each chat means its own.
func TestIDsOfSeveralThreads(t *testing.T) {
	store := storetest.New(t)
	chats := chat.On(store)
	for _, id := range []string{"a", "b"} {
		thread, err := store.CreateThread(background, lineage.ThreadOptions{SourceID: id, UserID: id})
		require.NoError(t, err)
		main, err := thread.Active(background)
		require.NoError(t, err)
		_, err = main.Extend(background, lineage.User("in "+id).WithID("1"), lineage.User("end").WithID("2"))
		require.NoError(t, err)
	}
	_, err := chats.CreateChat(background, chat.Chat{ID: "c", UserID: "ada"})
	require.NoError(t, err)
	require.NoError(t, chats.AddMessage(background, chat.Message{ID: "1", ChatID: "c", Name: "user", Data: []byte(`"in c"`)}))
	m, err := chats.Message(background, "c", "1")
	require.NoError(t, err)
	require.JSONEq(t, `"in c"`, string(m.Data))
	for _, id := range []string{"a", "b"} {
		b, err := chats.ActiveBranch(background, id)
		require.NoError(t, err)
		require.EqualValues(t, "2", b.HeadMessageID)
		require.NoError(t, chats.UpdateBranchHead(background, id, b.ID, "1"))
		_, err = chats.Append(background, chat.AppendRequest{ChatID: id, BranchID: b.ID, ExpectedHead: "1", Messages: []chat.Message{says("in " + id)}})
		require.NoError(t, err)
		messages := collect(t, chats.Messages(background, id))
		require.Len(t, messages, 2)
		require.Contains(t, string(messages[0].Data), "in "+id)
	}
}

// That many threads have messages of one id, or many are forked from one, costs nothing.
func TestSharedIDsDoNotGrow(t *testing.T) {
	backendtest.RequireScale(t, func(n int) map[string]int64 {
		store := storetest.New(t)
		counting := backendtest.NewCounting(write.Of(store).Engine())
		chats := chat.On(lineage.New(counting))
		for _, id := range []string{"c", "other"} {
			_, err := chats.CreateChat(background, chat.Chat{ID: id, UserID: "ada"})
			require.NoError(t, err)
		}
		add(t, chats, "c", "root", "")
		add(t, chats, "c", "next", "root")
		c, err := store.FindThread(background, "c")
		require.NoError(t, err)
		root, err := c.Find(background, "root")
		require.NoError(t, err)
		for i := range n {
			thread, err := store.CreateThread(background, lineage.ThreadOptions{SourceID: fmt.Sprint("t", i)})
			require.NoError(t, err)
			fork, err := thread.CreateBranch(background, "fork", lineage.BranchOptions{At: root.Span})
			require.NoError(t, err)
			_, err = fork.Extend(background, lineage.User("one").WithID("1"))
			require.NoError(t, err)
		}
		costs := make(map[string]int64)
		for name, do := range map[string]func() error{
			"add": func() error {
				return chats.AddMessage(background, chat.Message{ID: "new", ChatID: "c", ParentID: "root", Name: "user", Data: []byte(`1`)})
			},
			"add what others have": func() error {
				return chats.AddMessage(background, chat.Message{ID: "1", ChatID: "other", Name: "user", Data: []byte(`1`)})
			},
			"message": func() error { _, err := chats.Message(background, "t0", "1"); return err },
			"message of others": func() error {
				_, err := chats.Message(background, "c", "1")
				require.ErrorIs(t, err, chat.ErrOtherChat)
				return nil
			},
			"children": func() error { _, err := chats.HasChildren(background, "c", "root"); return err },
		} {
			costs[name] = counting.Cost(func() { require.NoError(t, do(), name) })
		}
		return costs
	})
}

// What a chat was given stays, though no branch has it any more, in a thread of the library
// as well.
func TestAppendedStays(t *testing.T) {
	store := storetest.New(t)
	chats := chat.On(store)
	_, err := store.CreateThread(background, lineage.ThreadOptions{SourceID: "c", UserID: "ada"})
	require.NoError(t, err)
	b, err := chats.ActiveBranch(background, "c")
	require.NoError(t, err)
	_, err = chats.Append(background, chat.AppendRequest{ChatID: "c", BranchID: b.ID, Messages: []chat.Message{says("m")}})
	require.NoError(t, err)
	require.NoError(t, chats.UpdateBranchHead(background, "c", b.ID, ""))
	_, err = store.Collect(background, lineage.CollectOptions{KeepUnused: -1, KeepReflog: -1})
	require.NoError(t, err)
	m, err := chats.Message(background, "c", "m")
	require.NoError(t, err)
	require.NotNil(t, m)
}

// The reflog of a branch has the moves of its head that leave something behind, and no others.
func TestHeadGoesForward(t *testing.T) {
	store := storetest.New(t)
	chats := chat.On(store)
	_, err := chats.CreateChat(background, chat.Chat{ID: "c", UserID: "ada"})
	require.NoError(t, err)
	b, err := chats.ActiveBranch(background, "c")
	require.NoError(t, err)
	add(t, chats, "c", "1", "")
	add(t, chats, "c", "2", "1")
	thread, err := store.FindThread(background, "c")
	require.NoError(t, err)
	c, err := thread.Active(background)
	require.NoError(t, err)
	moves := func() (reasons []string) {
		for m, err := range c.Reflog(background) {
			require.NoError(t, err)
			reasons = append(reasons, m.Reason)
		}
		return reasons
	}
	for _, head := range []chat.Ref{"", "1", "2", "2"} {
		require.NoError(t, chats.UpdateBranchHead(background, "c", b.ID, head))
		require.Empty(t, moves())
	}
	require.NoError(t, chats.UpdateBranchHead(background, "c", b.ID, "1"))
	require.Equal(t, []string{"update branch head"}, moves())
	require.NoError(t, chats.UpdateBranchHead(background, "c", b.ID, "2"))
	require.Len(t, moves(), 1)
	length, err := c.Len(background)
	require.NoError(t, err)
	require.EqualValues(t, 2, length)
}

// No branch and no checkpoint has the empty name.
func TestEmptyName(t *testing.T) {
	chats := chat.On(storetest.New(t))
	_, err := chats.CreateChat(background, chat.Chat{ID: "c", UserID: "ada"})
	require.NoError(t, err)
	b, err := chats.Branch(background, "c", "")
	require.NoError(t, err)
	require.Nil(t, b)
	k, err := chats.Checkpoint(background, "c", "")
	require.NoError(t, err)
	require.Nil(t, k)
	require.NoError(t, chats.DeleteCheckpoint(background, "c", ""))
}

// What is given at once has no bound but memory.
func TestAppendMany(t *testing.T) {
	chats := chat.On(storetest.New(t))
	_, err := chats.CreateChat(background, chat.Chat{ID: "c", UserID: "ada"})
	require.NoError(t, err)
	b, err := chats.ActiveBranch(background, "c")
	require.NoError(t, err)
	messages := make([]chat.Message, 10_500)
	for i := range messages {
		messages[i] = says(fmt.Sprint("m", i))
	}
	head, err := chats.Append(background, chat.AppendRequest{ChatID: "c", BranchID: b.ID, Messages: messages})
	require.NoError(t, err)
	n, err := chats.CountMessages(background, "c", string(head))
	require.NoError(t, err)
	require.Equal(t, len(messages), n)
}
