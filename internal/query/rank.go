package query

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"runtime"
	"slices"

	"github.com/lineage-store/lineage/internal/scratch"
	"github.com/lineage-store/lineage/internal/varint"
)

// A Match is a message that matched a query.
type Match struct {
	ID        []byte
	Rank      float64
	createdAt int64
}

// Matches are the matches of one search: all are added, then they are ranked. They are in a log, which is in a temporary
// file if they are many: the memory of a search does not grow with them. The zero value has none.
type Matches struct {
	// Chats are the chats with matches.
	Chats   []string
	chatsAt map[string]int
	last    int
	phrases int

	count  int
	writer scratch.TextWriter
	size   int           // of the log, in bytes
	buffer []byte        // the end of the log, which is not written yet
	log    *scratch.Text // once all matches were added
	// dropped has, for each id, the size of the log when its matches were dropped.
	dropped map[string]int
	ranks   []*bm25 // by chat
}

// Limits of a log in bytes. Tests make them smaller.
var (
	mostInMemory = 8 << 20
	mostBuffered = 64 << 10
)

// Len returns the number of matches that were added.
func (s *Matches) Len() int { return s.count }

// Close removes the temporary file. There are no matches then.
func (s *Matches) Close() {
	s.writer.Close()
	*s = Matches{}
}

// Add adds a message and its hits.
func (s *Matches) Add(chatID string, id []byte, createdAt int64, words int, found [][]Hit) {
	s.phrases = max(s.phrases, len(found))
	s.count++
	b := binary.AppendUvarint(s.buffer, uint64(s.chat(chatID)))
	b = append(binary.AppendUvarint(b, uint64(len(id))), id...)
	b = binary.AppendUvarint(binary.AppendVarint(b, createdAt), uint64(words))
	containing := 0
	for _, hits := range found {
		if len(hits) > 0 {
			containing++
		}
	}
	b = binary.AppendUvarint(b, uint64(containing))
	before := 0
	for i, hits := range found {
		if len(hits) > 0 {
			b = binary.AppendUvarint(b, uint64(i-before)) // the distance from the previous phrase with hits
			b = binary.AppendUvarint(b, uint64(len(hits)))
			before = i
		}
	}
	s.size += len(b) - len(s.buffer)
	if s.buffer = b; len(b) >= mostBuffered {
		s.write()
	}
}

func (s *Matches) write() {
	s.writer.Most = mostInMemory
	s.writer.Write(s.buffer)
	s.buffer = s.buffer[:0]
}

func (s *Matches) chat(id string) int {
	if len(s.Chats) > 0 && s.Chats[s.last] == id {
		return s.last
	}
	at, ok := s.chatsAt[id]
	if !ok {
		if s.chatsAt == nil {
			s.chatsAt = make(map[string]int)
		}
		at = len(s.Chats)
		s.Chats = append(s.Chats, id)
		s.chatsAt[id] = at
	}
	s.last = at
	return at
}

// Drop removes the messages with these ids. They may be added again.
func (s *Matches) Drop(ids map[string]bool) {
	if s.dropped == nil {
		s.dropped = make(map[string]int, len(ids))
	}
	for id := range ids {
		s.dropped[id] = s.size
	}
}

// logged is a match in the log.
type logged struct {
	Match
	chat, words int
	counts      []phraseCount // of the phrases with hits
}

type phraseCount struct{ phrase, hits int }

// each calls do with the matches in the order in which they were added, without those that were dropped. do must not
// retain their memory.
func (s *Matches) each(do func(m *logged)) {
	r := varint.Reader{Rest: s.log.Bytes()}
	var m logged
	for len(r.Rest) > 0 {
		at := s.size - len(r.Rest)
		m.chat = int(r.Next())
		m.ID = r.Take(r.Next())
		m.createdAt, m.words = r.Signed(), int(r.Next())
		m.counts = m.counts[:0]
		phrase := 0
		for range r.Next() {
			phrase += int(r.Next())
			m.counts = append(m.counts, phraseCount{phrase, int(r.Next())})
		}
		if until, dropped := s.dropped[string(m.ID)]; !dropped || at >= until {
			do(&m)
		}
	}
	runtime.KeepAlive(s.log)
}

// bm25 ranks the matches of a chat.
type bm25 struct {
	matches, words int
	average        float64
	weights        []float64 // of phrases; first the number of matches that have each
}

// Rank ranks the matches of each chat by BM25; a higher rank is better. Ranks depend only on the same chat. sizes is the
// number of messages by chat. No more matches can be added.
func (s *Matches) Rank(sizes map[string]int) (err error) {
	if s.log == nil {
		s.write()
		if s.log, err = s.writer.Text(); err != nil {
			return err
		}
	}
	s.ranks = make([]*bm25, len(s.Chats))
	for i := range s.ranks {
		s.ranks[i] = &bm25{weights: make([]float64, s.phrases)}
	}
	s.each(func(m *logged) {
		r := s.ranks[m.chat]
		r.matches++
		r.words += m.words
		for _, c := range m.counts {
			r.weights[c.phrase]++
		}
	})
	for i, r := range s.ranks {
		r.average = max(1, float64(r.words)/float64(r.matches))
		total := float64(max(sizes[s.Chats[i]], r.matches))
		for phrase, with := range r.weights {
			r.weights[phrase] = math.Log(1 + (total-with+0.5)/(with+0.5))
		}
	}
	return nil
}

// rank returns the rank of a match.
func (r *bm25) rank(m *logged) (rank float64) {
	const k1, b = 1.2, 0.75
	for _, c := range m.counts {
		count := float64(c.hits)
		rank += r.weights[c.phrase] * count * (k1 + 1) / (count + k1*(1-b+b*float64(m.words)/r.average))
	}
	return rank
}

// compare orders matches: the best first, and of equal rank the most recent first.
func (m *Match) compare(other *Match) int {
	if m.Rank != other.Rank {
		return cmp.Compare(other.Rank, m.Rank)
	}
	return cmp.Or(cmp.Compare(other.createdAt, m.createdAt), bytes.Compare(m.ID, other.ID))
}

// Best returns the first matches in order.
func (s *Matches) Best(limit int) []Match {
	if limit <= 0 {
		return nil
	}
	var heap []Match // the best so far; once there are as many as the limit, with the worst of them on top
	sink := func(at int) {
		for {
			last := at
			for child := 2*at + 1; child <= 2*at+2 && child < len(heap); child++ {
				if heap[child].compare(&heap[last]) > 0 {
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
	s.each(func(m *logged) {
		m.Rank = s.ranks[m.chat].rank(m)
		switch {
		case len(heap) < limit:
			heap = append(heap, Match{bytes.Clone(m.ID), m.Rank, m.createdAt})
			if len(heap) == limit {
				for at := limit/2 - 1; at >= 0; at-- {
					sink(at)
				}
			}
		case m.compare(&heap[0]) < 0:
			heap[0] = Match{append(heap[0].ID[:0], m.ID...), m.Rank, m.createdAt}
			sink(0)
		}
	})
	slices.SortFunc(heap, func(a, b Match) int { return a.compare(&b) })
	return heap
}
