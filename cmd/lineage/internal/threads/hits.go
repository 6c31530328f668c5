package threads

import (
	"cmp"
	"time"

	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/structure"
)

// Hit is a search result. Some fields are only shown to people.
type Hit struct {
	records.Hit
	CreatedAt time.Time
	// In are threads and contexts that contain it, at most maxHitThreads.
	In []string
}

// addIn adds a thread that contains it, by its title and its id for people.
func (h *Hit) addIn(title, id string) {
	if title != "" {
		id = screen.Cut(screen.Line(title), 40) + " (" + id + ")"
	}
	h.In = append(h.In, id)
}

// searchFactor is the number of matches that are examined per requested hit. Threads that share a message have a
// match each.
const searchFactor = 16

// maxHits limits the hits that can be requested.
const maxHits = 1 << 20

// FindHits returns the best hits, each message once. It calls find with growing limits until there are enough
// messages.
func FindHits(limit int, find func(limit int) ([]chat.SearchResult, error)) ([]*Hit, error) {
	limit = min(cmp.Or(limit, chat.DefaultSearchLimit), maxHits)
	for ask := limit * searchFactor; ; ask *= searchFactor {
		results, err := find(ask)
		if err != nil {
			return nil, err
		}
		hits := hitsOf(results)
		if len(hits) >= limit || len(results) < ask {
			return hits[:min(limit, len(hits))], nil
		}
	}
}

// hitsOf returns the messages found, each once with all its threads, in the order of the results.
func hitsOf(results []chat.SearchResult) []*Hit {
	var hits []*Hit
	seen := make(map[string]*Hit)
	for i := range results {
		r := &results[i]
		m := newChatMessageRecord(&r.Message, 0)
		// In a projection, threads that share a message have it with their id in front of its address.
		id := refs.WithoutThread(m.ID)
		h := seen[id]
		if h == nil {
			h = &Hit{Hit: records.Hit{ID: id, Kind: structure.MessageUsage.String(), Role: m.Role, Rank: r.Rank, Snippet: r.Snippet, Text: m.Text}, CreatedAt: m.CreatedAt}
			seen[id] = h
			hits = append(hits, h)
		}
		h.Threads = append(h.Threads, records.HitThread{ID: r.Message.ChatID})
	}
	return hits
}

// maxHitThreads limits the threads of a message that are named to people.
const maxHitThreads = 3
