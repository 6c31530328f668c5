package chat_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
)

// plain hides what a store offers beyond chat.Store.
type plain struct{ chat.Store }

// The short way and the long one lead to the same.
func TestOptional(t *testing.T) {
	ctx := context.Background()
	store, err := lineage.Open(ctx, t.TempDir(), &lineage.Options{Durability: lineage.Normal})
	require.NoError(t, err)
	defer store.Close()
	short := chat.On(store)
	c, err := short.CreateChat(ctx, chat.Chat{ID: "c", UserID: "ada"})
	require.NoError(t, err)
	parent := chat.Ref("")
	for i := range 5 {
		id := fmt.Sprint("m", i)
		require.NoError(t, short.AddMessage(ctx, chat.Message{ID: id, ChatID: "c", ParentID: parent, Name: "user", Data: json.RawMessage(`{}`)}))
		_, err := short.CreateBranch(ctx, chat.Branch{ChatID: "c", Name: fmt.Sprint("b", i), HeadMessageID: parent})
		require.NoError(t, err)
		parent = chat.Ref(id)
	}
	for _, name := range []string{"b2-v2", "b2-vx"} {
		_, err := short.CreateBranch(ctx, chat.Branch{ChatID: "c", Name: name})
		require.NoError(t, err)
	}
	for name, s := range map[string]chat.Store{"short": short, "long": plain{short}} {
		t.Run(name, func(t *testing.T) {
			for id, want := range map[string]int{"m0": 1, "m4": 5, "nobody": 0, "": 0} {
				n, err := chat.CountMessages(ctx, s, id)
				require.NoError(t, err)
				require.Equal(t, want, n, id)
			}
			for _, next := range []struct {
				chatID, current, want string
				known                 []string
			}{
				{"c", "main", "main-v2", nil},
				{"c", "main", "main-v4", []string{"main-v2", "main-v3"}},
				{"c", "b2", "b2-v4", nil}, // b2-v2 and b2-vx are counted
				{"nowhere", "main", "main-v1", nil},
			} {
				name, err := chat.NextBranchName(ctx, s, next.chatID, next.current, next.known)
				require.NoError(t, err)
				require.Equal(t, next.want, name)
			}

			title := name
			changed, err := chat.ChangeChat(ctx, s, "c", func(was chat.Chat) (chat.ChatUpdate, error) {
				require.Equal(t, c.UserID, was.UserID)
				require.Equal(t, c.CreatedAt, was.CreatedAt)
				return chat.ChatUpdate{Title: &title, Metadata: json.RawMessage(`{"by":"` + name + `"}`)}, nil
			})
			require.NoError(t, err)
			require.Equal(t, name, changed.Title)
			require.JSONEq(t, `{"by":"`+name+`"}`, string(changed.Metadata))

			_, err = chat.ChangeChat(ctx, s, "nowhere", func(chat.Chat) (chat.ChatUpdate, error) { panic("there is no chat") })
			require.ErrorIs(t, err, chat.ErrNotFound)
			for _, own := range []error{errors.New("mine"), chat.ErrNotFound} {
				_, err = chat.ChangeChat(ctx, s, "c", func(chat.Chat) (chat.ChatUpdate, error) { return chat.ChatUpdate{}, own })
				require.Equal(t, own, err, "an error of change's own is passed on")
			}
			_, err = chat.ChangeChat(ctx, s, "c", func(chat.Chat) (chat.ChatUpdate, error) {
				return chat.ChatUpdate{Metadata: json.RawMessage(`no JSON`)}, nil
			})
			require.ErrorIs(t, err, chat.ErrInvalid)
			is, err := s.Chat(ctx, "c")
			require.NoError(t, err)
			require.Equal(t, changed, *is)
		})
	}

	// Many change one chat, and none is lost.
	var all sync.WaitGroup
	errs := make([]error, 16)
	_, err = short.UpdateChat(ctx, "c", chat.ChatUpdate{Metadata: json.RawMessage(`0`)})
	require.NoError(t, err)
	for i := range errs {
		all.Go(func() {
			_, errs[i] = chat.ChangeChat(ctx, short, "c", func(was chat.Chat) (chat.ChatUpdate, error) {
				var n int
				err := json.Unmarshal(was.Metadata, &n)
				return chat.ChatUpdate{Metadata: fmt.Append(nil, n+1)}, err
			})
		})
	}
	all.Wait()
	require.NoError(t, errors.Join(errs...))
	is, err := short.Chat(ctx, "c")
	require.NoError(t, err)
	require.Equal(t, "16", string(is.Metadata))
}
