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

// Hit is what a search found. Some fields are only shown to people.
type Hit struct {
	records.Hit
	CreatedAt time.Time
	// In are the threads and contexts that have it, at most MaxHitThreads.
	In []string
}

// addIn adds a thread that has it, by its title and the id that people read.
func (h *Hit) addIn(title, id string) {
	if title != "" {
		id = screen.Cut(screen.Line(title), 40) + " (" + id + ")"
	}
	h.In = append(h.In, id)
}

// searchFactor is how many matches are looked at for each hit that is wanted: threads that share a message have a match each.
const searchFactor = 16

// maxHits bounds how many hits can be asked for.
const maxHits = 1 << 20

// FindHits returns the best hits, each message once. find is called with growing limits until there are enough messages.
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

// hitsOf returns the messages that were found, each once with all its threads, in the order of the results.
func hitsOf(results []chat.SearchResult) []*Hit {
	var hits []*Hit
	seen := make(map[string]*Hit)
	for i := range results {
		r := &results[i]
		m := newChatMessageRecord(&r.Message, 0)
		// In a projection, threads that share a message have it under its address after their ids.
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

// maxHitThreads is how many of a message's threads are named to a person.
const maxHitThreads = 3
