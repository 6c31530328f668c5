package sealed

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// forked has so many conversations of 100 messages, each with forks that are copies of its first ones.
func forked(conversations, forks int) *history {
	h := &history{entries: map[string][]byte{}, commit: 1}
	random := rand.New(rand.NewPCG(1, 2))
	run := 0
	for range forks {
		for c := range conversations {
			run++
			h.entries["r"+string(runOf(run))] = []byte{}
			for m := range 1 + random.IntN(100) {
				h.use(c*100+m, uint64(m+1), runOf(run), 0)
			}
			if h.place += 2; h.place > 2000 {
				h.commit, h.place = h.commit+1, 0
			}
		}
	}
	return h
}

// copied has so many copies of a conversation of some messages.
func copied(copies, messages int) *history {
	h := &history{entries: map[string][]byte{}, commit: 1}
	for c := range copies {
		h.entries["r"+string(runOf(c))] = []byte{}
		for m := range messages {
			h.use(m, uint64(m+1), runOf(c), 0)
		}
		if h.place > 2000 {
			h.commit, h.place = h.commit+1, 0
		}
	}
	return h
}

// readUses reads the uses of a subject as an index does.
func readUses(t require.TestingT, w *written, subject []byte) (n int) {
	to := append(bytes.Clone(subject), bytes.Repeat([]byte{0xff}, useSize)...)
	for from, limit := subject, 4; from != nil; limit = min(2*limit, 512) {
		entries, next, err := w.Page(from, to, limit)
		require.NoError(t, err)
		n, from = n+len(entries), next
	}
	return n
}

// BenchmarkUses compares lookups of uses in series with those of the same uses without.
func BenchmarkUses(b *testing.B) {
	for _, c := range []struct {
		name  string
		h     *history
		batch int
	}{
		{"20 conversations with 40 forks", forked(20, 40), 500},
		{"100000 copies", copied(100_000, 10), 2},
		{"one copy", copied(1, 5000), 2000},
	} {
		b.Run(c.name, func(b *testing.B) {
			tables := []*written{writeUses(b, testShape{}, c.h.entries, 1, mixedCost), write(b, testShape{}, c.h.entries)}
			require.False(b, tables[0].hasSeries())
			require.True(b, tables[1].hasSeries() || c.h.commit < 5)
			subjects := map[string]bool{}
			var keys []string
			for k := range c.h.entries {
				if k[0] == 'u' {
					subjects[k[:1+subjectSize]] = true
					if keys = append(keys, k); len(keys) > 1000 {
						keys = keys[:1000]
					}
				}
			}
			all := slices.Sorted(maps.Keys(subjects))
			var prefixes, gets [2]time.Duration
			rounds := 0
			for b.Loop() {
				rounds++
				for i, w := range tables {
					start := time.Now()
					for n := range c.batch {
						require.NotZero(b, readUses(b, w, []byte(all[n%len(all)])))
					}
					prefixes[i] += time.Since(start)
					start = time.Now()
					for _, k := range keys {
						if ok, err := w.Has([]byte(k)); !ok || err != nil {
							b.Fatal(err)
						}
					}
					gets[i] += time.Since(start)
				}
			}
			b.ReportMetric(float64(prefixes[1].Nanoseconds())/float64(rounds*c.batch), "ns/subject")
			b.ReportMetric(float64(prefixes[1])/float64(prefixes[0]), "subject-ratio")
			b.ReportMetric(float64(gets[1])/float64(gets[0]), "has-ratio")
			for i, name := range []string{"bytes-without", "bytes"} {
				stored, _ := tables[i].Size()
				b.ReportMetric(float64(stored), name)
			}
		})
	}
}
