package chattest

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/chat"
)

// Steps of tests. Each must succeed.

func (s *store) createChat(id string) chat.Chat {
	c, err := s.CreateChat(background, chat.Chat{ID: id, UserID: "ada"})
	require.NoError(s.t, err)
	return c
}

// text returns a message with a text.
func text(chatID, id string, parent chat.Ref, role, says string) chat.Message {
	part, _ := json.Marshal(says)
	return chat.Message{
		ID: id, ChatID: chatID, ParentID: parent, Name: role, Type: chat.TypeMessage, CreatedAt: 1700000000000,
		Data: fmt.Appendf(nil, `{"role":%q,"parts":[{"type":"text","text":%s}]}`, role, part),
	}
}

// add adds a user message and returns it.
func (s *store) add(chatID, id string, parent chat.Ref) chat.Message {
	m := text(chatID, id, parent, "user", "this is "+id)
	require.NoError(s.t, s.AddMessage(background, m))
	return m
}

func (s *store) createBranch(b chat.Branch) chat.Branch {
	made, err := s.CreateBranch(background, b)
	require.NoError(s.t, err)
	return made
}

func (s *store) active(chatID string) chat.Branch {
	b, err := s.ActiveBranch(background, chatID)
	require.NoError(s.t, err)
	require.NotNil(s.t, b)
	return *b
}

func (s *store) branches(chatID string) []chat.BranchInfo {
	b, err := s.ListBranches(background, chatID)
	require.NoError(s.t, err)
	return b
}

func (s *store) list(o chat.ListOptions) []string {
	var ids []string
	for _, c := range collect(s.t, s.ListChats(background, o)) {
		ids = append(ids, c.ID)
	}
	return ids
}

// chain returns the ids of a message's chain.
func (s *store) chain(chatID, id string) []string {
	chain := idsOf(collect(s.t, s.MessageChain(background, chatID, id)))
	back := idsOf(collect(s.t, s.Ancestors(background, chatID, id)))
	slices.Reverse(back)
	require.Equal(s.t, chain, back)
	return chain
}

func (s *store) graph(chatID string) chat.Graph {
	g, err := s.Graph(background, chatID)
	require.NoError(s.t, err)
	return g
}

// requireMessage compares messages, as far as the store promises to preserve them.
func (s *store) requireMessage(want, got chat.Message) {
	if s.config.Reformats {
		require.JSONEq(s.t, string(want.Data), string(got.Data))
		got.Data = want.Data
	}
	require.Equal(s.t, want, got)
}

// requireError compares an error with a sentinel error and with its subject.
func (s *store) requireError(err, want error, subject chat.Subject, id string) {
	require.ErrorIs(s.t, err, want)
	var e *chat.Error
	require.ErrorAs(s.t, err, &e)
	require.Equal(s.t, subject, e.Subject)
	require.Equal(s.t, id, e.ID)
	require.ErrorContains(s.t, err, fmt.Sprintf("%q", id))
}

func collect[T any](t require.TestingT, sequence iter.Seq2[T, error]) []T {
	var all []T
	for v, err := range sequence {
		require.NoError(t, err)
		all = append(all, v)
	}
	return all
}

func idsOf(messages []chat.Message) []string {
	var ids []string
	for _, m := range messages {
		ids = append(ids, m.ID)
	}
	return ids
}

// tick waits until the clock of a store has advanced.
func tick() { time.Sleep(3 * time.Millisecond) }
