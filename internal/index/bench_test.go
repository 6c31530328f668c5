//test:race

package index

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
)

const benchKeys = 100_000

// benchIndex is an index whose entries are all folded.
func benchIndex(tb testing.TB, keys int) *DB {
	db := open(tb, newPath(tb), Options{OverlayBytes: 64 << 20})
	db.bolt.NoSync = true
	db.Apply(at(1), batchOf(0, keys, same("a value of some twenty")))
	require.NoError(tb, db.Checkpoint())
	return db
}

func BenchmarkApply(b *testing.B) {
	for _, size := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("entries=%d", size), func(b *testing.B) {
			db := open(b, newPath(b), Options{})
			db.bolt.NoSync = true
			batches := make([][]Entry, 2000)
			for i := range batches {
				batches[i] = batchOf(i*size, (i+1)*size, same("a value of some twenty"))
			}
			b.ReportAllocs()
			n := uint64(0)
			for b.Loop() {
				n++
				db.Apply(at(n), batches[n%uint64(len(batches))])
				require.NoError(b, db.Throttle())
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n)/float64(size), "ns/entry")
		})
	}
}

func BenchmarkGet(b *testing.B) {
	db := benchIndex(b, benchKeys)
	db.Apply(at(2), batchOf(0, 1000, same("newer")))
	bench := func(name string, from, to int, tail string) {
		keys := make([][]byte, 0, to-from)
		for i := from; i < to; i++ {
			keys = append(keys, []byte(key(i)+tail))
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				_, ok, err := db.Get(keys[i%len(keys)])
				if err != nil || ok != (tail == "") {
					b.Fatal(ok, err)
				}
				i++
			}
		})
	}
	bench("overlay", 0, 1000, "")
	bench("base", 1000, benchKeys, "")
	bench("absent", 1000, benchKeys, "?")
}

// BenchmarkSnapshot takes a snapshot after each commit, like a reader.
func BenchmarkSnapshot(b *testing.B) {
	db := benchIndex(b, benchKeys)
	batch := batchOf(0, 1, same("v"))
	b.ReportAllocs()
	n := uint64(1)
	for b.Loop() {
		n++
		db.Apply(at(n), batch)
		db.Snapshot().Close()
	}
}

func BenchmarkScan(b *testing.B) {
	db := benchIndex(b, benchKeys)
	s := db.Snapshot()
	defer s.Close()
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		for _, err := range s.Scan([]byte("b"), []byte("c")) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/entry")
}

// BenchmarkScanShort reads ranges of one entry and of none.
func BenchmarkScanShort(b *testing.B) {
	db := benchIndex(b, benchKeys)
	for name, tail := range map[string]string{"one": "", "none": "?"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				s := db.Snapshot()
				from := []byte(key(i%benchKeys) + tail)
				for _, err := range s.Scan(from, append(from, 0)) {
					require.NoError(b, err)
				}
				s.Close()
				i += 7
			}
		})
	}
}

func BenchmarkLast(b *testing.B) {
	db := benchIndex(b, benchKeys)
	s := db.Snapshot()
	defer s.Close()
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		if _, ok, err := s.Last(nil, []byte(key(i%benchKeys)+"?")); !ok || err != nil {
			b.Fatal(ok, err)
		}
	}
}

func BenchmarkFold(b *testing.B) {
	db := benchIndex(b, benchKeys)
	b.ReportAllocs()
	n := uint64(1)
	for b.Loop() {
		n++
		db.Apply(at(n), batchOf(0, 10_000, same("another value of thirty")))
		require.NoError(b, db.Checkpoint())
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n-1)/10_000, "ns/entry")
}

func BenchmarkOpen(b *testing.B) {
	db := benchIndex(b, benchKeys)
	require.NoError(b, db.Close())
	for b.Loop() {
		db, err := Open(db.path, Options{})
		require.NoError(b, err)
		require.NoError(b, db.Close())
	}
}

// The allocations of commits and reads are limited.
func TestAllocations(t *testing.T) {
	db := benchIndex(t, 10_000)
	db.Apply(at(2), batchOf(0, 100, same("newer")))
	s := db.Snapshot()
	defer s.Close()
	overlay, base, absent := []byte(key(5)), []byte(key(5000)), []byte(key(5000)+"?")
	get := func(key []byte) func() {
		return func() {
			if _, _, err := s.Get(key); err != nil {
				t.Error(err)
			}
		}
	}
	tests := map[string]struct {
		most float64
		run  func()
	}{
		"get from the overlay": {0, get(overlay)},
		"get from the base":    {1, get(base)}, // the value
		"get of no entry":      {0, get(absent)},
		"snapshot":             {1, func() { db.Snapshot().Close() }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			require.LessOrEqual(t, campaign.Allocs(200, test.run), test.most)
		})
	}
}
