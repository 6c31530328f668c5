package lineage_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
)

// messageOf returns a unique message of 500 bytes.
func messageOf(i int) lineage.Item {
	return lineage.User(fmt.Sprintf("%010d", i) + strings.Repeat("x", 490))
}

// grown returns a context with n messages, together of them per commit.
func grown(b *testing.B, s *lineage.Store, n, together int, message func(int) lineage.Item) *lineage.Context {
	b.Helper()
	c := newContext(b, s)
	for i := 0; i < n; {
		batch := make([]lineage.Item, min(n-i, together))
		for k := range batch {
			batch[k] = message(i)
			i++
		}
		_, err := c.Extend(bg, batch...)
		require.NoError(b, err)
	}
	return c
}

func BenchmarkExtend(b *testing.B) {
	for _, d := range []backend.Durability{lineage.Normal, lineage.Full} {
		b.Run(d.String(), func(b *testing.B) {
			s, err := lineage.Open(bg, b.TempDir(), lineage.Options{Durability: d})
			require.NoError(b, err)
			defer s.Close()
			c := newContext(b, s)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i++
				if _, err := c.Extend(bg, messageOf(i)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// largeStore is the default number of messages in the large store of BenchmarkExtendInLargeStore.
// The quoted figures are for 10,000,000, which take some minutes and 7 GB:
// LINEAGE_BENCH_MESSAGES=10000000.
const largeStore = 200_000

// BenchmarkExtendInLargeStore compares an extend in a large store with one in a store of 10,000
// messages, interleaved, and reports the median of the ratios. The stores are built before the
// measurement, and rounds are too short for a checkpoint.
func BenchmarkExtendInLargeStore(b *testing.B) {
	const rounds, extends = 15, 500
	n := campaign.BenchMessages(b, largeStore)
	contexts := make([]*lineage.Context, 2)
	for i, length := range []int{10_000, n} {
		s := newStore(b)
		grown(b, s, length, 500, messageOf)
		contexts[i] = newContext(b, s)
	}
	next := 1 << 30 // above the numbers of existing messages
	extend := func(c *lineage.Context) float64 {
		start := time.Now()
		for range extends {
			next++
			if _, err := c.Extend(bg, messageOf(next)); err != nil {
				b.Fatal(err)
			}
		}
		return float64(time.Since(start).Nanoseconds()) / extends
	}
	var small, ratios []float64
	for b.Loop() {
		for range rounds {
			s, l := extend(contexts[0]), extend(contexts[1])
			small, ratios = append(small, s), append(ratios, l/s)
		}
	}
	b.ReportMetric(0, "ns/op") // an op here is all rounds
	b.ReportMetric(median(small), "ns/extend")
	b.ReportMetric(median(ratios), "x/extend-10000")
}

// bareWrites returns the time of n appends of size bytes to a file.
func bareWrites(b *testing.B, f *os.File, size int64, n int) float64 {
	buf := make([]byte, size)
	start := time.Now()
	for range n {
		if _, err := f.Write(buf); err != nil {
			b.Fatal(err)
		}
	}
	return float64(time.Since(start).Nanoseconds()) / float64(n)
}

// journalBytes returns the size of a store without its index.
func journalBytes(b *testing.B, s *lineage.Store) int64 {
	stats, err := s.Stats(bg)
	require.NoError(b, err)
	return int64(stats.StoredBytes - stats.IndexBytes)
}

// BenchmarkFork forks histories of different lengths, interleaved so that noise affects all alike,
// and reports the median ratios to each other and to a plain write of the bytes that a fork adds to
// the journal.
func BenchmarkFork(b *testing.B) {
	const rounds, forks = 15, 200
	lengths := []int{10, 1_000, 1_000_000}
	s := newStore(b)
	contexts := make([]*lineage.Context, len(lengths))
	for i, n := range lengths {
		contexts[i] = grown(b, s, n, 1000, func(i int) lineage.Item { return lineage.User(fmt.Sprint(i % 1000)) })
	}
	require.NoError(b, s.Sync(bg))
	before := journalBytes(b, s)
	for range forks {
		_, err := contexts[0].Fork(bg, lineage.ForkOptions{})
		require.NoError(b, err)
	}
	size := (journalBytes(b, s) - before) / forks
	raw, err := os.Create(filepath.Join(b.TempDir(), "bare"))
	require.NoError(b, err)
	defer raw.Close()
	ratios := make([][]float64, len(lengths))
	var shortest, writes []float64
	for b.Loop() {
		for range rounds {
			took := make([]float64, len(lengths))
			for i, c := range contexts {
				start := time.Now()
				for range forks {
					if _, err := c.Fork(bg, lineage.ForkOptions{}); err != nil {
						b.Fatal(err)
					}
				}
				took[i] = float64(time.Since(start).Nanoseconds()) / forks
				ratios[i] = append(ratios[i], took[i]/took[0])
			}
			shortest = append(shortest, took[0])
			writes = append(writes, took[0]/bareWrites(b, raw, size, forks))
		}
	}
	b.ReportMetric(0, "ns/op") // an op here is all rounds
	b.ReportMetric(median(shortest), "ns/fork")
	b.ReportMetric(median(writes), "x/write")
	for i, n := range lengths[1:] {
		b.ReportMetric(median(ratios[i+1]), fmt.Sprintf("x/fork-%d", n))
	}
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// BenchmarkRead reads a history of 100,000 messages, whole and in windows, with one message per
// commit and with 500.
func BenchmarkRead(b *testing.B) {
	const length = 100_000
	for _, together := range []int{1, 500} {
		s := newStore(b)
		c := grown(b, s, length, together, messageOf)
		for _, test := range []struct {
			name   string
			window lineage.Window
			reads  int
		}{
			{"all", lineage.Window{}, length},
			{"last 1", lineage.Window{Last: 1}, 1},
			{"last 20", lineage.Window{Last: 20}, 20},
			{"last 100", lineage.Window{Last: 100}, 100},
			{"middle 100", lineage.Window{From: length / 2, To: length/2 + 99}, 100},
		} {
			b.Run(fmt.Sprintf("%d together/%s", together, test.name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					n := 0
					for e, err := range c.Entries(bg, test.window) {
						if err != nil || len(e.Body) != 500 {
							b.Fatal(err, len(e.Body))
						}
						n++
					}
					if n != test.reads {
						b.Fatal(n)
					}
				}
				b.ReportMetric(float64(test.reads)*float64(b.N)/b.Elapsed().Seconds(), "messages/s")
			})
		}
	}
}

// BenchmarkSubagent forks a context with 1,000 messages and extends the fork: at the end of the
// history, and at a span without forks.
func BenchmarkSubagent(b *testing.B) {
	const length = 1000
	for _, together := range []int{1, 500} {
		for _, fresh := range []bool{false, true} {
			b.Run(fmt.Sprintf("%d together/fresh=%v", together, fresh), func(b *testing.B) {
				s := newStore(b)
				c := grown(b, s, length, together, messageOf)
				tip, err := c.Tip(bg)
				require.NoError(b, err)
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					i++
					o := lineage.ForkOptions{At: tip}
					if fresh {
						o.At.Seq = uint64(1 + i*7%(length-1))
					}
					child, err := c.Fork(bg, o)
					if err != nil {
						b.Fatal(err)
					}
					if _, err := child.Extend(bg, messageOf(length+i)); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
