package chattest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/chat"
)

// testOrigins adds messages that state their origin, by appending and individually.
func testOrigins(t *testing.T, s *store) {
	s.createChat("c")
	s.createChat("other")
	s.add("other", "theirs", "")
	whole := chat.Origin{UserID: "bob", ModelID: "large", SourceID: "https://example.com/a?b=1"}
	asked, answer := text("", "asked", "", "user", "why?"), text("", "answer", "", "assistant", "because")
	answer.Origin = whole
	main := s.active("c")
	_, err := s.Append(background, chat.AppendRequest{ChatID: "c", BranchID: main.ID, Messages: []chat.Message{asked, answer}})
	require.NoError(t, err)
	better := text("c", "better", "asked", "assistant", "that is why")
	better.Origin = chat.Origin{ModelID: "small", DerivedFrom: "answer"}
	require.NoError(t, s.AddMessage(background, better))
	require.NoError(t, s.AddMessage(background, better), "it is known")

	// A message can be derived from content that the store does not have.
	quoted := text("c", "quoted", "asked", "assistant", "as they say")
	quoted.Origin.DerivedFrom = content.Sum([]byte("never said here")).String()
	_, err = s.Append(background, chat.AppendRequest{
		ChatID: "c", NewBranch: &chat.Branch{Name: "side", HeadMessageID: "asked"}, Messages: []chat.Message{quoted},
	})
	require.NoError(t, err)

	check := func() {
		for id, want := range map[string]chat.Origin{"asked": {}, "answer": whole, "better": better.Origin, "quoted": quoted.Origin} {
			m, err := s.Message(background, "c", id)
			require.NoError(t, err)
			got := m.Origin
			if want.DerivedFrom == "answer" {
				require.NotEmpty(t, got.DerivedFrom, "a store may know the message by its content")
				got.DerivedFrom = want.DerivedFrom
			}
			require.Equal(t, want, got, id)
		}
		last := collect(t, s.MessageChain(background, "c", "answer"))[1]
		require.Equal(t, whole, last.Origin)
	}
	check()
	if !s.config.Forgets {
		s.reopen()
		check()
	}

	for want, from := range map[error]string{chat.ErrNotFound: "nowhere", chat.ErrOtherChat: "theirs"} {
		bad := text("c", "bad", "asked", "assistant", "")
		bad.Origin.DerivedFrom = from
		require.ErrorIs(t, s.AddMessage(background, bad), want)
		_, err = s.Append(background, chat.AppendRequest{ChatID: "c", BranchID: main.ID, ExpectedHead: "answer", Messages: []chat.Message{bad}})
		require.ErrorIs(t, err, want)
	}
	for _, bad := range []chat.Origin{{UserID: "\x00"}, {ModelID: "\xff"}, {SourceID: "a\x00"}, {DerivedFrom: "\xff"}} {
		m := text("c", "bad", "asked", "assistant", "")
		m.Origin = bad
		require.ErrorIs(t, s.AddMessage(background, m), chat.ErrInvalid)
	}

	// The ids can be used again, and nothing is left of the earlier origins.
	_, err = s.DeleteChat(background, "c", chat.DeleteOptions{})
	require.NoError(t, err)
	s.createChat("c")
	s.add("c", "answer", "")
	m, err := s.Message(background, "c", "answer")
	require.NoError(t, err)
	require.Zero(t, m.Origin)
}
