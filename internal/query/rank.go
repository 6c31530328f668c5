package query

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"slices"
)

// A Match is a message that matched a query. Its id and its counts of phrases are in
// Matches.bytes.
type Match struct {
	chat      int32
	idSize    int32
	words     int32
	counts    int32 // size of the counts in bytes
	at        int
	createdAt int64
	Rank      float64
}

// Matches are the matches of one search.
type Matches struct {
	phrases int
	all     []Match
	// bytes contains, for each match, the id and, for each phrase with hits, the
	// distance from the previous such phrase and the number of hits.
	bytes []byte
	// Chats are the chats with matches.
	Chats   []string
	chatsAt map[string]int32
	last    int32
}

// Add adds a message and its hits.
func (s *Matches) Add(chatID string, id []byte, createdAt int64, words int, found [][]Hit) {
	s.phrases = len(found)
	m := Match{chat: s.chat(chatID), idSize: int32(len(id)), words: int32(words), at: len(s.bytes), createdAt: createdAt}
	s.bytes = append(s.bytes, id...)
	before := 0
	for i, hits := range found {
		if len(hits) > 0 {
			s.bytes = binary.AppendUvarint(s.bytes, uint64(i-before))
			s.bytes = binary.AppendUvarint(s.bytes, uint64(len(hits)))
			before = i
		}
	}
	m.counts = int32(len(s.bytes) - m.at - len(id))
	s.all = append(s.all, m)
}

func (s *Matches) chat(id string) int32 {
	if len(s.Chats) > 0 && s.Chats[s.last] == id {
		return s.last
	}
	at, ok := s.chatsAt[id]
	if !ok {
		if s.chatsAt == nil {
			s.chatsAt = make(map[string]int32)
		}
		at = int32(len(s.Chats))
		s.Chats = append(s.Chats, id)
		s.chatsAt[id] = at
	}
	s.last = at
	return at
}

// ID returns the id of a match.
func (s *Matches) ID(m *Match) []byte { return s.bytes[m.at : m.at+int(m.idSize)] }

// eachCount calls a function with each phrase of a match and its number of hits.
func (s *Matches) eachCount(m *Match, do func(phrase, count int)) {
	at := m.at + int(m.idSize)
	counts := s.bytes[at : at+int(m.counts)]
	for phrase := 0; len(counts) > 0; {
		step, n := binary.Uvarint(counts)
		count, n2 := binary.Uvarint(counts[n:])
		counts = counts[n+n2:]
		phrase += int(step)
		do(phrase, int(count))
	}
}

// Drop removes the messages with these ids.
func (s *Matches) Drop(ids map[string]bool) {
	s.all = slices.DeleteFunc(s.all, func(m Match) bool { return ids[string(s.ID(&m))] })
}

// Rank ranks the matches of each chat by BM25; a higher rank is better. Ranks depend
// only on the same chat. sizes is the number of messages by chat.
func (s *Matches) Rank(sizes map[string]int) {
	if len(s.Chats) > 1 {
		slices.SortStableFunc(s.all, func(a, b Match) int { return cmp.Compare(a.chat, b.chat) })
	}
	weights := make([]float64, s.phrases)
	for rest := s.all; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].chat == rest[0].chat {
			n++
		}
		s.rankChat(rest[:n], sizes[s.Chats[rest[0].chat]], weights)
		rest = rest[n:]
	}
}

// rankChat ranks the matches in a chat with that number of messages. weights is
// scratch memory for one number per phrase.
func (s *Matches) rankChat(found []Match, messages int, weights []float64) {
	const k1, b = 1.2, 0.75
	clear(weights)
	words := 0
	for i := range found {
		words += int(found[i].words)
		s.eachCount(&found[i], func(phrase, _ int) { weights[phrase]++ })
	}
	average := max(1, float64(words)/float64(len(found)))
	total := float64(max(messages, len(found)))
	for i, with := range weights {
		weights[i] = math.Log(1 + (total-with+0.5)/(with+0.5))
	}
	for i := range found {
		m := &found[i]
		m.Rank = 0
		s.eachCount(m, func(phrase, n int) {
			count := float64(n)
			m.Rank += weights[phrase] * count * (k1 + 1) / (count + k1*(1-b+b*float64(m.words)/average))
		})
	}
}

// compare orders matches: the best first, and of equal rank the most recent first.
func (s *Matches) compare(a, b *Match) int {
	if a.Rank != b.Rank {
		return cmp.Compare(b.Rank, a.Rank)
	}
	return cmp.Or(cmp.Compare(b.createdAt, a.createdAt), bytes.Compare(s.ID(a), s.ID(b)))
}

// Best returns the first matches in order.
func (s *Matches) Best(limit int) []Match {
	limit = min(limit, len(s.all))
	byOrder := func(a, b Match) int { return s.compare(&a, &b) }
	if limit > len(s.all)/4 {
		sorted := slices.Clone(s.all)
		slices.SortFunc(sorted, byOrder)
		return sorted[:limit]
	}
	// A heap of the best matches so far, with the worst of them on top.
	heap := slices.Clone(s.all[:limit])
	sink := func(at int) {
		for {
			last := at
			for child := 2*at + 1; child <= 2*at+2 && child < len(heap); child++ {
				if s.compare(&heap[child], &heap[last]) > 0 {
					last = child
				}
			}
			if last == at {
				return
			}
			heap[at], heap[last] = heap[last], heap[at]
			at = last
		}
	}
	for at := limit/2 - 1; at >= 0; at-- {
		sink(at)
	}
	for i := limit; i < len(s.all) && limit > 0; i++ {
		if m := &s.all[i]; s.compare(m, &heap[0]) < 0 {
			heap[0] = *m
			sink(0)
		}
	}
	slices.SortFunc(heap, byOrder)
	return heap
}
