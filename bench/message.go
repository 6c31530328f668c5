package bench

import (
	"encoding/json"
	"math/rand/v2"
	"strconv"
)

// A message is a number and text generated from the seed.
const minMessage = 24

// messages generates unique messages. Their text is words, so that it compresses roughly like real
// text.
type messages struct {
	size int
	rng  *rand.Rand
	next int
}

func newMessages(c *Config, stream uint64) *messages {
	return &messages{size: c.MessageBytes, rng: rand.New(rand.NewPCG(c.Seed, stream))}
}

// words are common words, so that searches have results.
var words = []string{
	"the", "branch", "agent", "answer", "window", "model", "time", "index", "value", "error", "river", "column", "paper", "green",
	"system", "number", "water", "people", "history", "letter", "market", "engine", "question", "result", "morning", "context",
}

// one returns a message.
func (m *messages) one() []byte {
	b := make([]byte, 0, m.size+16)
	b = strconv.AppendUint(b, m.rng.Uint64(), 36)
	b = append(b, '-')
	b = strconv.AppendInt(b, int64(m.next), 10)
	m.next++
	for len(b) < m.size {
		b = append(b, ' ')
		if r := m.rng.Uint64(); r%4 == 0 {
			b = strconv.AppendUint(b, r>>40, 36)
		} else {
			b = append(b, words[(r>>8)%uint64(len(words))]...)
		}
	}
	return b[:m.size]
}

// some returns n messages.
func (m *messages) some(n int) [][]byte {
	all := make([][]byte, n)
	for i := range all {
		all[i] = m.one()
	}
	return all
}

// roleOf returns alternating roles.
func roleOf(position int) string {
	if position%2 == 0 {
		return "user"
	}
	return "assistant"
}

// messageJSON returns a message as in the data column of the documented schema.
func messageJSON(id, role string, text []byte) []byte {
	type part struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	b, err := json.Marshal(struct {
		ID    string `json:"id"`
		Role  string `json:"role"`
		Parts []part `json:"parts"`
	}{id, role, []part{{"text", string(text)}}})
	if err != nil {
		panic(err) // strings always marshal
	}
	return b
}
