package sqltest

import (
	"fmt"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
)

// manyMessages is the number of messages in a filled database, in chats of a thousand. It is small
// in short runs.
func manyMessages() int {
	if testing.Short() {
		return 2_000
	}
	return 100_000
}

// Bench measures appending a message and forking, in an empty database and in one with 100,000
// messages, and reading a chain of 10,000 messages.
func Bench(b *testing.B, c Config) {
	for _, held := range []int{0, manyMessages()} {
		b.Run(fmt.Sprintf("held=%d", held), func(b *testing.B) {
			s := sqlchat.On(open(b, c.New(b)))
			for i := range held / 1000 {
				grow(b, s, fmt.Sprint("held", i), 1000)
			}
			b.Run("append", func(b *testing.B) { benchAppend(b, s, uuid.NewString()) })
			b.Run("fork", func(b *testing.B) { benchFork(b, s, uuid.NewString()) })
		})
	}
	b.Run("chain=10000", func(b *testing.B) {
		s := sqlchat.On(open(b, c.New(b)))
		grow(b, s, "c", 10_000)
		b.ResetTimer()
		for b.Loop() {
			n := 0
			for _, err := range s.Messages(background, "c") {
				require.NoError(b, err)
				n++
			}
			require.Equal(b, 10_000, n)
		}
	})
	b.Run("branches=100", func(b *testing.B) {
		s := sqlchat.On(open(b, c.New(b)))
		grow(b, s, "c", 10_000)
		for i := range 100 {
			_, err := s.CreateBranch(background, chat.Branch{ChatID: "c", Name: fmt.Sprint("b", i), HeadMessageID: chat.Ref(fmt.Sprint("c.", 9000+i))})
			require.NoError(b, err)
		}
		b.ResetTimer()
		for b.Loop() {
			infos, err := s.ListBranches(background, "c")
			require.NoError(b, err)
			require.Len(b, infos, 101)
		}
	})
	b.Run("search in 10000", func(b *testing.B) {
		s := sqlchat.On(open(b, c.New(b)))
		grow(b, s, "c", 10_000)
		grow(b, s, "other", 10_000)
		b.ResetTimer()
		for b.Loop() {
			found, err := s.SearchMessages(background, "c", "number 4242", chat.SearchOptions{})
			require.NoError(b, err)
			require.Len(b, found, 1)
		}
	})
}

// benchAppend appends to a new chat.
func benchAppend(b *testing.B, s chat.Store, chatID string) {
	branch := grow(b, s, chatID, 0)
	head := chat.Ref("")
	n := 0
	b.ResetTimer()
	for b.Loop() {
		n++
		next, err := s.Append(background, chat.AppendRequest{
			ChatID: chatID, BranchID: branch.ID, ExpectedHead: head,
			Messages: []chat.Message{text("", fmt.Sprint(chatID, ".", n), "", "an ordinary message of a few words that somebody wrote")},
		})
		require.NoError(b, err)
		head = next
	}
}

func benchFork(b *testing.B, s chat.Store, chatID string) {
	branch := grow(b, s, chatID, 100)
	n := 0
	b.ResetTimer()
	for b.Loop() {
		n++
		_, err := s.CreateBranch(background, chat.Branch{ChatID: chatID, Name: fmt.Sprint("fork", n), HeadMessageID: branch.HeadMessageID})
		require.NoError(b, err)
	}
}
