package chattest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/chat"
)

// feature: storage/chat-taken
// feature: storage/nothing
func testChats(t *testing.T, s *store) {
	none, err := s.Chat(background, "c")
	require.NoError(t, err)
	require.Nil(t, none)

	want := chat.Chat{ID: "c", UserID: "ada", Title: "A title", Metadata: json.RawMessage(`{"a":1}`), CreatedAt: 1600000000123}
	made, err := s.CreateChat(background, want)
	require.NoError(t, err)
	require.NotZero(t, made.UpdatedAt)
	want.UpdatedAt = made.UpdatedAt
	require.JSONEq(t, string(want.Metadata), string(made.Metadata))
	want.Metadata = made.Metadata
	require.Equal(t, want, made)

	got, err := s.Chat(background, "c")
	require.NoError(t, err)
	require.Equal(t, &want, got)

	main := s.active("c")
	require.NotEmpty(t, main.ID)
	require.Equal(t, chat.Branch{ID: main.ID, ChatID: "c", Name: chat.MainBranch, IsActive: true, CreatedAt: main.CreatedAt}, main)
	require.Empty(t, collect(t, s.Messages(background, "c")))

	_, err = s.CreateChat(background, chat.Chat{ID: "c", UserID: "bob"})
	s.requireError(err, chat.ErrExists, chat.SubjectChat, "c")
	again, err := s.Chat(background, "c")
	require.NoError(t, err)
	require.Equal(t, &want, again)

	plain := s.createChat("plain")
	require.Nil(t, plain.Metadata)
	require.Empty(t, plain.Title)
	require.NotZero(t, plain.CreatedAt)

	for _, bad := range []chat.Chat{{ID: ""}, {ID: "a\x00b"}, {ID: "a\xff"}, {ID: "d", Metadata: json.RawMessage(`{`)}} {
		_, err = s.CreateChat(background, bad)
		require.ErrorIs(t, err, chat.ErrInvalid, "%+v", bad)
	}
	for _, err := range s.Messages(background, "nobody") {
		s.requireError(err, chat.ErrNotFound, chat.SubjectChat, "nobody")
	}
}

// feature: storage/chat-upsert
func testUpsert(t *testing.T, s *store) {
	first, err := s.UpsertChat(background, chat.Chat{ID: "c", UserID: "ada", Title: "first"})
	require.NoError(t, err)
	require.Equal(t, "first", first.Title)
	second, err := s.UpsertChat(background, chat.Chat{ID: "c", UserID: "ada", Title: "second", Metadata: json.RawMessage(`{}`)})
	require.NoError(t, err)
	require.Equal(t, first, second)
	require.Len(t, s.branches("c"), 1)
	_, err = s.UpsertChat(background, chat.Chat{ID: "c", UserID: "bob"})
	s.requireError(err, chat.ErrOtherUser, chat.SubjectChat, "c")
}

// feature: storage/chat-update
func testUpdateChat(t *testing.T, s *store) {
	title, empty := "new", ""
	_, err := s.UpdateChat(background, "c", chat.ChatUpdate{Title: &title})
	s.requireError(err, chat.ErrNotFound, chat.SubjectChat, "c")

	made := s.createChat("c")
	tick()
	got, err := s.UpdateChat(background, "c", chat.ChatUpdate{Title: &title})
	require.NoError(t, err)
	require.Equal(t, title, got.Title)
	require.Nil(t, got.Metadata)
	require.Greater(t, got.UpdatedAt, made.UpdatedAt)
	require.Equal(t, made.CreatedAt, got.CreatedAt)

	_, err = s.UpdateChat(background, "c", chat.ChatUpdate{Metadata: json.RawMessage(`{"a":1,"b":2}`)})
	require.NoError(t, err)
	got, err = s.UpdateChat(background, "c", chat.ChatUpdate{Metadata: json.RawMessage(`{"c":3}`)})
	require.NoError(t, err)
	require.JSONEq(t, `{"c":3}`, string(got.Metadata), "metadata is replaced, not merged")
	require.Equal(t, title, got.Title)

	got, err = s.UpdateChat(background, "c", chat.ChatUpdate{Title: &empty})
	require.NoError(t, err)
	require.Empty(t, got.Title)
	stored, err := s.Chat(background, "c")
	require.NoError(t, err)
	require.Equal(t, &got, stored)

	_, err = s.UpdateChat(background, "c", chat.ChatUpdate{Metadata: json.RawMessage(`nonsense`)})
	require.ErrorIs(t, err, chat.ErrInvalid)
}

func testChangeChat(t *testing.T, s *store) {
	_, err := s.ChangeChat(background, "c", func(chat.Chat) (chat.ChatUpdate, error) { panic("there is no chat") })
	s.requireError(err, chat.ErrNotFound, chat.SubjectChat, "c")

	made, err := s.CreateChat(background, chat.Chat{ID: "c", UserID: "ada", Title: "old", Metadata: json.RawMessage(`{"a":1}`)})
	require.NoError(t, err)
	tick()
	title := "new"
	changed, err := s.ChangeChat(background, "c", func(was chat.Chat) (chat.ChatUpdate, error) {
		require.Equal(t, made, was)
		return chat.ChatUpdate{Title: &title, Metadata: json.RawMessage(`{"b":2}`)}, nil
	})
	require.NoError(t, err)
	require.Equal(t, title, changed.Title)
	require.JSONEq(t, `{"b":2}`, string(changed.Metadata))
	require.Greater(t, changed.UpdatedAt, made.UpdatedAt)
	stored, err := s.Chat(background, "c")
	require.NoError(t, err)
	require.Equal(t, &changed, stored)

	// A failing function changes nothing.
	for _, own := range []error{errors.New("mine"), chat.ErrNotFound, context.DeadlineExceeded} {
		_, err = s.ChangeChat(background, "c", func(chat.Chat) (chat.ChatUpdate, error) { return chat.ChatUpdate{Title: new(string)}, own })
		require.Equal(t, own, err, "it is passed on as it is")
	}
	_, err = s.ChangeChat(background, "c", func(chat.Chat) (chat.ChatUpdate, error) {
		return chat.ChatUpdate{Metadata: json.RawMessage(`no JSON`)}, nil
	})
	require.ErrorIs(t, err, chat.ErrInvalid)
	got, err := s.Chat(background, "c")
	require.NoError(t, err)
	require.Equal(t, stored, got)
}

// testChatUsers gives a chat a user. It keeps the one that it has.
//
// feature: storage/chat-upsert
// feature: storage/tenants
func testChatUsers(t *testing.T, s *store) {
	_, err := s.CreateChat(background, chat.Chat{ID: "c"})
	require.NoError(t, err)
	ada, bob, nobody, title := "ada", "bob", "", "t"
	_, err = s.UpsertChat(background, chat.Chat{ID: "c", UserID: ada})
	s.requireError(err, chat.ErrNoUser, chat.SubjectChat, "c")
	require.NotErrorIs(t, err, chat.ErrOtherUser)
	_, err = s.UpsertChat(background, chat.Chat{ID: "c"})
	require.NoError(t, err)
	for _, user := range []*string{&nobody, &ada, &ada} {
		got, err := s.UpdateChat(background, "c", chat.ChatUpdate{UserID: user})
		require.NoError(t, err)
		require.Equal(t, *user, got.UserID)
	}
	require.Equal(t, []string{"c"}, s.list(chat.ListOptions{UserID: "ada"}))
	for _, user := range []string{bob, nobody} {
		_, err = s.UpsertChat(background, chat.Chat{ID: "c", UserID: user})
		s.requireError(err, chat.ErrOtherUser, chat.SubjectChat, "c")
	}
	_, err = s.UpsertChat(background, chat.Chat{ID: "c", UserID: ada})
	require.NoError(t, err)
	for _, user := range []*string{&bob, &nobody} {
		_, err = s.UpdateChat(background, "c", chat.ChatUpdate{UserID: user, Title: &title})
		s.requireError(err, chat.ErrOtherUser, chat.SubjectChat, "c")
	}
	bad := "a\x00b"
	_, err = s.UpdateChat(background, "c", chat.ChatUpdate{UserID: &bad})
	require.ErrorIs(t, err, chat.ErrInvalid)
	got, err := s.UpdateChat(background, "c", chat.ChatUpdate{Metadata: json.RawMessage(`{}`)})
	require.NoError(t, err)
	require.Equal(t, "ada", got.UserID)
	require.Empty(t, got.Title, "what was refused changed nothing")
}

// feature: storage/chat-list
// feature: storage/chat-order
func testListChats(t *testing.T, s *store) {
	require.Empty(t, s.list(chat.ListOptions{}))
	for i, user := range []string{"ada", "bob", "ada", "ada"} {
		_, err := s.CreateChat(background, chat.Chat{ID: fmt.Sprint("c", i), UserID: user})
		require.NoError(t, err)
		tick()
	}
	for _, test := range []struct {
		name    string
		options chat.ListOptions
		want    []string
	}{
		{"all, newest first", chat.ListOptions{}, []string{"c3", "c2", "c1", "c0"}},
		{"of a user", chat.ListOptions{UserID: "ada"}, []string{"c3", "c2", "c0"}},
		{"of nobody", chat.ListOptions{UserID: "eve"}, nil},
		{"limit", chat.ListOptions{Limit: 2}, []string{"c3", "c2"}},
		{"offset alone", chat.ListOptions{Offset: 3}, []string{"c0"}},
		{"limit and offset", chat.ListOptions{Limit: 2, Offset: 1}, []string{"c2", "c1"}},
		{"offset after the end", chat.ListOptions{Offset: 9}, nil},
		{"user, limit and offset", chat.ListOptions{UserID: "ada", Limit: 1, Offset: 1}, []string{"c2"}},
	} {
		require.Equal(t, test.want, s.list(test.options), test.name)
	}
	for _, bad := range []chat.ListOptions{{Limit: -1}, {Offset: -1}, {Metadata: []chat.MetadataFilter{{Key: "a", Value: []int{1}}}}} {
		for _, err := range s.ListChats(background, bad) {
			require.ErrorIs(t, err, chat.ErrInvalid)
		}
	}

	s.add("c1", "m1", "")
	s.add("c1", "m2", "m1")
	s.add("c1", "m3", "m1")
	s.createBranch(chat.Branch{ChatID: "c1", Name: "side"})
	all := collect(t, s.ListChats(background, chat.ListOptions{UserID: "bob"}))
	require.Len(t, all, 1)
	require.Equal(t, 3, all[0].MessageCount)
	require.Equal(t, 2, all[0].BranchCount)
	for range s.ListChats(background, chat.ListOptions{}) {
		break
	}
}

// feature: storage/chat-filter
func testMetadataFilter(t *testing.T, s *store) {
	for id, metadata := range map[string]string{
		"yes":    `{"archived":true,"n":1,"tag":"a"}`,
		"no":     `{"archived":false,"n":2.5,"tag":"b"}`,
		"nested": `{"nested":{"k":"v","n":0},"tag":"1"}`,
		"null":   `{"archived":null,"nested":7,"big":9007199254740993}`,
		"quote":  `{"tag":"it's \"so\""}`,
		"bare":   "",
		"array":  `{"archived":[],"tag":["support","a"],"n":[3,1.0],"nested":{"k":["w","v"]}}`,
	} {
		c := chat.Chat{ID: id, UserID: "ada"}
		if metadata != "" {
			c.Metadata = json.RawMessage(metadata)
		}
		_, err := s.CreateChat(background, c)
		require.NoError(t, err)
	}
	for _, test := range []struct {
		key   string
		value any
		want  []string
	}{
		{"archived", true, []string{"yes"}},
		{"archived", false, []string{"no"}},
		{"archived", nil, []string{"nested", "null", "quote", "bare"}},
		{"archived", "", nil},
		{"tag", "support", []string{"array"}},
		{"tag", "supp", nil},
		{"tag", nil, []string{"null", "bare"}},
		{"nested.k", "w", []string{"array"}},
		{"archived", "true", nil},
		{"archived", 1, nil},
		{"n", 1, []string{"yes", "array"}},
		{"n", 1.0, []string{"yes", "array"}},
		{"n", json.Number("1.0"), []string{"yes", "array"}},
		{"n", 2.5, []string{"no"}},
		{"n", "1", nil},
		{"tag", "a", []string{"yes", "array"}},
		{"tag", "A", nil},
		{"tag", 1, nil},
		{"tag", "1", []string{"nested"}},
		{"tag", `it's "so"`, []string{"quote"}},
		{"nested.k", "v", []string{"nested", "array"}},
		{"nested.n", 0, []string{"nested"}},
		{"nested.k.deeper", "v", nil},
		{"nested", 7, []string{"null"}},
		{"big", int64(9007199254740993), []string{"null"}},
		{"big", int64(9007199254740992), nil},
		{"missing", "v", nil},
	} {
		got := s.list(chat.ListOptions{Metadata: []chat.MetadataFilter{{Key: test.key, Value: test.value}}})
		require.ElementsMatch(t, test.want, got, "%s = %v", test.key, test.value)
	}
	require.ElementsMatch(t, []string{"yes", "array"}, s.list(chat.ListOptions{UserID: "ada", Limit: 5, Metadata: []chat.MetadataFilter{{Key: "tag", Value: "a"}}}))
}

// testUpdateOrder lists chats by the time of their last change.
func testUpdateOrder(t *testing.T, s *store) {
	s.createChat("a")
	s.createChat("b")
	s.add("b", "b1", "")
	s.add("a", "a1", "")
	branch := s.active("a")
	title := "t"
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"a message", func() error { return s.AddMessage(background, text("a", "a2", "a1", "user", "")) }},
		{"an update", func() error { _, err := s.UpdateChat(background, "a", chat.ChatUpdate{Title: &title}); return err }},
		{"a head", func() error { return s.UpdateBranchHead(background, "a", branch.ID, "a2") }},
		{"an append", func() error {
			_, err := s.Append(background, chat.AppendRequest{ChatID: "a", BranchID: branch.ID, ExpectedHead: "a2", Messages: []chat.Message{text("", "a3", "", "user", "")}})
			return err
		}},
		{"a root", func() error { return s.AddMessage(background, text("a", "a4", "", "user", "")) }},
	} {
		tick()
		s.add("b", "before "+step.name, "b1")
		require.Equal(t, []string{"b", "a"}, s.list(chat.ListOptions{}), "before %s", step.name)
		tick()
		require.NoError(t, step.do())
		require.Equal(t, []string{"a", "b"}, s.list(chat.ListOptions{}), "after %s", step.name)
	}
}

// testDeleteChat also uses every id again after it was deleted.
//
// feature: state/no-deletion
// feature: storage/chat-delete
func testDeleteChat(t *testing.T, s *store) {
	deleted, err := s.DeleteChat(background, "c", chat.DeleteOptions{})
	require.NoError(t, err)
	require.False(t, deleted)
	s.createChat("other")
	kept := s.add("other", "kept", "")

	for round := range 3 {
		s.createChat("c")
		s.add("c", "m1", "")
		s.add("c", "m2", "m1")
		s.add("c", "m3", "m1")
		s.createBranch(chat.Branch{ID: "b", ChatID: "c", Name: "side", HeadMessageID: "m3", IsActive: true})
		_, err = s.CreateCheckpoint(background, chat.Checkpoint{ID: "k", ChatID: "c", Name: "here", MessageID: "m2"})
		require.NoError(t, err)
		require.Equal(t, []string{"m1", "m3"}, s.chain("c", "m3"), "round %d", round)

		deleted, err = s.DeleteChat(background, "c", chat.DeleteOptions{UserID: "bob"})
		require.NoError(t, err)
		require.False(t, deleted)
		deleted, err = s.DeleteChat(background, "c", chat.DeleteOptions{UserID: "ada"})
		require.NoError(t, err)
		require.True(t, deleted)
		s.requireGone("c", []string{"m1", "m2", "m3"})
		if !s.config.Forgets {
			s.reopen()
			s.requireGone("c", []string{"m1", "m2", "m3"})
		}
	}
	// The ids can be used by any chat now.
	s.add("other", "m1", "kept")
	require.Equal(t, []string{"kept", "m1"}, s.chain("other", "m1"))
	got, err := s.Message(background, "other", "kept")
	require.NoError(t, err)
	s.requireMessage(kept, *got)
}

func (s *store) requireGone(chatID string, messages []string) {
	c, err := s.Chat(background, chatID)
	require.NoError(s.t, err)
	require.Nil(s.t, c)
	for _, id := range messages {
		m, err := s.Message(background, chatID, id)
		require.NoError(s.t, err)
		require.Nil(s.t, m)
		require.Empty(s.t, s.chain(chatID, id))
		has, err := s.HasChildren(background, chatID, id)
		require.NoError(s.t, err)
		require.False(s.t, has)
	}
	b, err := s.ActiveBranch(background, chatID)
	require.NoError(s.t, err)
	require.Nil(s.t, b)
	require.Empty(s.t, s.branches(chatID))
	k, err := s.ListCheckpoints(background, chatID)
	require.NoError(s.t, err)
	require.Empty(s.t, k)
	require.Empty(s.t, s.graph(chatID).Nodes)
	s.requireError(s.AddMessage(background, text(chatID, "late", "", "user", "")), chat.ErrNotFound, chat.SubjectChat, chatID)
}
