package embedded

import (
	"context"
	"encoding/binary"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// The benchmarks here report ratios: each runs its two sides interleaved, so that
// noise affects both alike, and reports the median ratio of the rounds.

const (
	messageSize = 500
	rounds      = 15
)

// writer adds messages to one context of a store.
type writer struct {
	engine  *Engine
	context structure.ContextID
	at      structure.SpanRef
	body    []byte
	n       uint64
	options backend.Options
}

func newWriter(tb testing.TB, e *Engine, d backend.Durability) *writer {
	w := &writer{
		engine: e, context: structure.NewID[structure.ContextID](), at: structure.SpanRef{Run: structure.NewID[structure.RunID]()},
		body: make([]byte, messageSize), options: backend.Options{Durability: d},
	}
	copy(w.body[8:], w.context[:]) // bodies differ between writers
	_, err := e.Apply(context.Background(), &structure.Commit{Records: []structure.Record{
		&structure.Context{ID: w.context}, &structure.Run{ID: w.at.Run},
	}}, backend.Options{Durability: backend.Normal})
	require.NoError(tb, err)
	return w
}

func (w *writer) extend() error {
	w.n++
	binary.LittleEndian.PutUint64(w.body, w.n)
	was := w.at
	if was.Seq == 0 {
		was = structure.SpanRef{}
	}
	w.at.Seq++
	now := time.Now()
	block := structure.NewBlock(content.TypeText, content.BlockOrigin{Kind: content.OriginUser}, now, w.body)
	w.options.Tips = []backend.Expect{{Context: w.context, Tip: was}}
	_, err := w.engine.Apply(context.Background(), &structure.Commit{Time: now, Records: []structure.Record{
		block,
		&structure.Span{Ref: w.at, Usages: []structure.Usage{{Kind: structure.MessageUsage, Content: block.ID, Role: "user", CreatedAt: now}}},
		&structure.Tip{Context: w.context, Span: w.at},
	}}, w.options)
	return err
}

// bare appends the same bytes to a file without a store.
type bare struct {
	file vfs.File
	end  int64
	buf  []byte
}

func newBare(tb testing.TB) *bare {
	f, err := vfs.OS().Create(filepath.Join(tb.TempDir(), "bare"))
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, f.Close()) })
	return &bare{file: f, buf: make([]byte, messageSize)}
}

func (w *bare) write() error {
	n, err := w.file.WriteAt(w.buf, w.end)
	w.end += int64(n)
	return err
}

func (w *bare) writeSync() error {
	if err := w.write(); err != nil {
		return err
	}
	return w.file.Sync()
}

func timed(tb testing.TB, n int, op func() error) time.Duration {
	start := time.Now()
	for range n {
		if err := op(); err != nil {
			tb.Fatal(err)
		}
	}
	return time.Since(start)
}

// ratio reports the duration of a divided by that of b.
func ratio(tb *testing.B, name string, n int, a, b func() error) {
	timed(tb, n, a)
	timed(tb, n, b)
	var ratios, as, bs []float64
	for range rounds {
		ta, tb := timed(tb, n, a), timed(tb, n, b)
		ratios = append(ratios, float64(ta)/float64(tb))
		as = append(as, float64(ta)/float64(n))
		bs = append(bs, float64(tb)/float64(n))
	}
	report(tb, name, ratios)
	report(tb, "ns/op", as)
	report(tb, "bare-ns/op", bs)
}

func report(b *testing.B, name string, values []float64) {
	slices.Sort(values)
	b.ReportMetric(values[len(values)/2], name)
}

func openBench(b *testing.B) *Engine {
	e, err := Open(context.Background(), filepath.Join(b.TempDir(), "store"), Options{})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, e.Close()) })
	return e
}

// BenchmarkExtendNormal compares an extend of normal durability with a plain
// write.
func BenchmarkExtendNormal(b *testing.B) {
	w, raw := newWriter(b, openBench(b), backend.Normal), newBare(b)
	for b.Loop() {
		ratio(b, "x-write", 2000, w.extend, raw.write)
	}
}

// BenchmarkExtendFull compares an extend of full durability with a plain write
// and fdatasync.
func BenchmarkExtendFull(b *testing.B) {
	w, raw := newWriter(b, openBench(b), backend.Full), newBare(b)
	for b.Loop() {
		ratio(b, "x-write+fdatasync", 100, w.extend, raw.writeSync)
	}
}

// BenchmarkExtendFull64 compares the throughput of 64 writers with that of one.
func BenchmarkExtendFull64(b *testing.B) {
	const writers, each = 64, 40
	e := openBench(b)
	one := newWriter(b, e, backend.Full)
	many := make([]*writer, writers)
	for i := range many {
		many[i] = newWriter(b, e, backend.Full)
	}
	for b.Loop() {
		var ratios []float64
		for range rounds {
			alone := timed(b, each, one.extend)
			var group sync.WaitGroup
			var failed atomic.Value
			start := time.Now()
			for _, w := range many {
				group.Go(func() {
					for range each {
						if err := w.extend(); err != nil {
							failed.Store(err)
						}
					}
				})
			}
			group.Wait()
			together := time.Since(start)
			require.Nil(b, failed.Load())
			ratios = append(ratios, float64(writers)*float64(alone)/float64(together))
		}
		report(b, "x-throughput", ratios)
	}
}

// TestExtendAllocations limits the allocations of an extend, without the records
// that the caller creates.
func TestExtendAllocations(t *testing.T) {
	e, err := Open(context.Background(), filepath.Join(t.TempDir(), "store"), Options{OverlayBytes: 1 << 30})
	require.NoError(t, err)
	defer e.Close()
	w := newWriter(t, e, backend.Normal)
	for range 100 {
		require.NoError(t, w.extend())
	}
	allocs := campaign.Allocs(500, func() {
		if err := w.extend(); err != nil {
			t.Fatal(err)
		}
	})
	// 7 are the commit, its records, usages and expectation.
	require.LessOrEqual(t, allocs, float64(7+8))
}
