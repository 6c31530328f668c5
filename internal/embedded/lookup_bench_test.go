package embedded

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/judge"
	"github.com/lineage-store/lineage/structure"
)

// BenchmarkLookups compares random lookups of an index in leaves with those of the same index in its
// sealed table: of entries of which each lookup reads another block.
func BenchmarkLookups(b *testing.B) {
	const threads = 100_000
	db, err := index.Open(filepath.Join(b.TempDir(), "index"), index.Options{Shape: keys.Shape{}})
	require.NoError(b, err)
	defer db.Close()
	found := map[byte][][]byte{}
	for n := uint64(1); n <= threads; n++ {
		batch := entriesOfChat(b, n)
		for _, e := range batch {
			found[e.Key[0]] = append(found[e.Key[0]], e.Key)
		}
		db.Apply(index.State{Number: n}, batch)
	}
	require.NoError(b, db.Checkpoint())
	times := map[byte][]time.Duration{}
	for range 2 {
		s := db.Snapshot()
		for table, all := range found {
			rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			at := 0
			times[table] = append(times[table], timed(b, 20_000, func() error {
				at++
				_, ok, err := s.Get(all[at])
				if !ok {
					b.Fatal("not found")
				}
				return err
			}))
		}
		s.Close()
		require.NoError(b, db.Compact(context.Background(), keys.Sealed))
	}
	for b.Loop() {
	}
	for table, t := range times {
		b.ReportMetric(float64(t[1])/float64(t[0]), fmt.Sprintf("%c-x-leaves", table))
		b.ReportMetric(float64(t[1])/20_000, fmt.Sprintf("%c-ns", table))
	}
}

// entriesOfChat returns entries as a chat of two messages has them.
func entriesOfChat(b *testing.B, n uint64) []index.Entry {
	at := time.UnixMilli(1_700_000_000_000 + int64(n)*60_000)
	thread := structure.DeriveID[structure.ThreadID]("thread", fmt.Sprint("chat ", n))
	c, r := structure.NewID[structure.ContextID](), structure.NewID[structure.RunID]()
	ref := structure.SpanRef{Run: r, Seq: 2}
	record := func(prefix []byte, r structure.Record) []byte {
		value, err := structure.AppendRecord(prefix, r)
		require.NoError(b, err)
		return value
	}
	moved := binary.AppendUvarint(binary.AppendUvarint(nil, n), uint64(at.UnixMilli()))
	t := &structure.Thread{
		ID: thread, SourceID: fmt.Sprint("chat ", n), Title: fmt.Sprintf("How to make %d of %d", n*7919%1009, n), Active: c, Incarnation: n,
		Keeps: true, Named: 1, CreatedAt: at, UpdatedAt: at.Add(time.Minute),
	}
	lookup, rest := keys.AppendLookup(nil, nil, judge.Lookup{Home: structure.Home{Thread: thread, Incarnation: n}, SourceID: fmt.Sprint("message ", n), Number: 1}, ref)
	entries := []index.Entry{
		{Key: lookup, Value: rest},
		{Key: keys.Of(keys.TableThread, thread[:]), Value: record(nil, t)},
		{Key: keys.Of(keys.TableContext, c[:]), Value: record(moved, &structure.Context{ID: c, Thread: thread, Tip: ref, CreatedAt: at})},
		{Key: keys.Of(keys.TableRun, r[:]), Value: keys.AppendRun(nil, structure.RunInfo{Run: structure.Run{ID: r, Home: structure.Home{Thread: thread, Incarnation: n}}})},
		{Key: keys.Branch(thread, "main"), Value: record(nil, &structure.Branch{Thread: thread, Name: "main", Context: c, CreatedAt: at})},
		{Key: keys.Of(keys.TableRunOfThread, thread[:], r[:]), Value: keys.Present},
		{Key: keys.Of(keys.TableContextOfThread, thread[:], c[:]), Value: keys.Present},
		{Key: keys.Named(thread, c, "main"), Value: keys.Present},
		{Key: keys.TitleText(t), Value: keys.Present},
		{Key: keys.SourceText(t), Value: keys.Present},
		{Key: keys.ThreadEnd(thread), Value: keys.Present},
	}
	slices.SortFunc(entries, func(a, b index.Entry) int { return slices.Compare(a.Key, b.Key) })
	return entries
}
