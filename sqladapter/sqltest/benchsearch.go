package sqltest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
)

// BenchSearch measures searches in a chat with 20,000 messages, and in a thousand chats.
func BenchSearch(b *testing.B, c Config) {
	long, chats := 20_000, 1000
	if testing.Short() {
		long, chats = 500, 20
	}
	queries := []struct{ name, query string }{
		{"common", "everyone"}, {"rare", "needle"}, {"two", "everyone report"}, {"phrase", `"annual report"`}, {"prefix", "repo*"}, {"none", "absent"},
	}
	b.Run(fmt.Sprint("in=", long), func(b *testing.B) {
		s := sqlchat.On(open(b, c.New(b)))
		speak(b, s, "c", long)
		for _, q := range queries {
			b.Run(q.name, func(b *testing.B) {
				for b.Loop() {
					_, err := s.SearchMessages(background, "c", q.query, chat.SearchOptions{})
					require.NoError(b, err)
				}
			})
		}
	})
	b.Run(fmt.Sprint("chats=", chats), func(b *testing.B) {
		db := open(b, c.New(b))
		for i := range chats {
			speak(b, sqlchat.On(db), fmt.Sprint("chat", i), 20)
		}
		for _, q := range queries {
			b.Run(q.name, func(b *testing.B) {
				for b.Loop() {
					require.NoError(b, searchEverywhere(db, q.query))
				}
			})
		}
	})
}

func searchEverywhere(db *sqladapter.DB, query string) error {
	_, err := sqlchat.SearchAll(background, db, "", query, chat.SearchOptions{})
	return err
}

// speak creates a chat of messages with about fifty words: one that is in all, a pair that is in
// every seventh, and one that is in every thousandth.
func speak(t testing.TB, s chat.Store, chatID string, count int) {
	branch := grow(t, s, chatID, 0)
	vocabulary := plainWord.FindAllString(Corpus(t)[0].Text+" "+Corpus(t)[1].Text+" "+Corpus(t)[2].Text, -1)
	messages := make([]chat.Message, count)
	for i := range messages {
		var b strings.Builder
		for j := range 50 {
			b.WriteString(vocabulary[(i*j+i+3*j*j)%len(vocabulary)] + " ")
		}
		b.WriteString("everyone")
		if i%7 == 0 {
			b.WriteString(" read the annual report")
		}
		if i%1000 == 0 {
			b.WriteString(" with a needle")
		}
		messages[i] = text(chatID, fmt.Sprint(chatID, ".", i), "", b.String())
	}
	_, err := s.Append(background, chat.AppendRequest{ChatID: chatID, BranchID: branch.ID, Messages: messages})
	require.NoError(t, err)
}
