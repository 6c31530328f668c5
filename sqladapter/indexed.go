package sqladapter

import (
	"runtime"
	"strings"
	"sync"

	"github.com/lineage-store/lineage/lineage/chat"
)

// indexed is what finds a message.
type indexed struct {
	text, terms string
	card        []byte
}

// indexShare is how many messages are worth a goroutine.
const indexShare = 32

// indexAll returns what finds each of the messages.
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
	c := newCataloguer()
	for i := range messages {
		into[i] = c.index(&messages[i])
	}
}

// terms remembers what words are found by.
type terms map[string]string

// mostRemembered is how many words are remembered, and longestRemembered the length
// of one in bytes.
const mostRemembered, longestRemembered = 20_000, 32

func (t terms) of(word string) string {
	if term, ok := t[word]; ok {
		return term
	}
	term := termOf(word)
	if len(t) < mostRemembered && len(word) <= longestRemembered {
		t[strings.Clone(word)] = strings.Clone(term)
	}
	return term
}
