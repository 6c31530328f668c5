package chatrows

import (
	"runtime"
	"strings"
	"sync"

	"github.com/lineage-store/lineage/internal/form"
	"github.com/lineage-store/lineage/internal/query"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
)

// indexed is the search data of a message.
type indexed struct {
	text, terms string
	card        []byte
}

// indexShare is the minimum number of messages per goroutine.
const indexShare = 32

// indexAll returns the search data of messages.
func indexAll(messages []chat.Message) []indexed {
	all := make([]indexed, len(messages))
	share := max(indexShare, (len(messages)+runtime.GOMAXPROCS(0)-1)/runtime.GOMAXPROCS(0))
	if len(messages) <= share {
		indexSome(messages, all)
		return all
	}
	var wg sync.WaitGroup
	for from := 0; from < len(messages); from += share {
		to := min(from+share, len(messages))
		wg.Go(func() { indexSome(messages[from:to], all[from:to]) })
	}
	wg.Wait()
	return all
}

func indexSome(messages []chat.Message, into []indexed) {
	c := query.NewCataloguer()
	for i := range messages {
		into[i] = indexedOf(c, &messages[i])
	}
}

// indexedOf returns the search data of a message.
func indexedOf(c *query.Cataloguer, m *chat.Message) indexed {
	text := form.Searched(m.Data, m.Name)
	words := c.Sort(text)
	return indexed{text: text, terms: termsOf(c, m.ChatID), card: c.Card(m.ID, m.Name, m.CreatedAt, words)}
}

// termsOf returns the collected terms, with spaces between and around them.
func termsOf(c *query.Cataloguer, chatID string) string {
	chatTerm := sqladapter.ChatTerm(chatID)
	size := len(chatTerm) + 2
	c.Each(func(term string) { size += len(term) + 1 })
	var b strings.Builder
	if size > mostTerms {
		b.WriteString(" " + chatTerm + " " + sqladapter.ManyTerms + " ")
		return b.String()
	}
	b.Grow(size)
	b.WriteString(" " + chatTerm + " ")
	c.Each(func(term string) {
		b.WriteString(term)
		b.WriteByte(' ')
	})
	return b.String()
}

// mostTerms is the maximum size of a message's terms in bytes.
const mostTerms = 512 << 10
