package journal

import (
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/vfs"
)

// onDisk opens a journal on the disk with temporary files.
func onDisk(tb testing.TB) *Journal {
	j, err := Open(filepath.Join(tb.TempDir(), "journal"), Options{SyncInterval: never})
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, j.Close()) })
	return j
}

func bareFile(tb testing.TB) vfs.File {
	f, err := vfs.OS().Create(filepath.Join(tb.TempDir(), "bare"))
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, f.Close()) })
	return f
}

func TestAppendAllocatesNothing(t *testing.T) {
	j := onDisk(t)
	body := payload(1, 500)
	require.Zero(t, campaign.Allocs(2000, func() {
		if _, err := j.Append(body, nil, true); err != nil {
			t.Error(err)
		}
	}))
	require.Zero(t, campaign.Allocs(20, func() {
		f, err := j.Append(body, nil, false)
		if err == nil {
			err = j.Sync(f.Number)
		}
		if err != nil {
			t.Error(err)
		}
	}), "with its sync")
}

// Reading frames in order allocates no more per frame than its share of the
// read-ahead buffer.
func TestReadingAheadAllocatesLittle(t *testing.T) {
	j := onDisk(t)
	body := payload(1, 500)
	const frames = 10_000
	for range frames {
		_, err := j.Append(body, nil, false)
		require.NoError(t, err)
	}
	require.Less(t, campaign.Allocs(3, func() {
		for _, err := range j.Frames(Position{}) {
			if err != nil {
				t.Error(err)
			}
		}
	}), float64(frames/50))
}

func BenchmarkAppend(b *testing.B) {
	body := payload(1, 500)
	b.Run("journal", func(b *testing.B) {
		j := onDisk(b)
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			if _, err := j.Append(body, nil, true); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("bare", func(b *testing.B) {
		f := bareFile(b)
		b.SetBytes(int64(len(body)))
		var end int64
		for b.Loop() {
			if _, err := f.WriteAt(body, end); err != nil {
				b.Fatal(err)
			}
			end += int64(len(body))
		}
	})
}

func BenchmarkAppendSync(b *testing.B) {
	body := payload(1, 500)
	for _, writers := range []int{1, 64} {
		b.Run(fmt.Sprintf("journal/writers=%d", writers), func(b *testing.B) {
			j := onDisk(b)
			b.SetParallelism(writers) // times GOMAXPROCS
			var left atomic.Int64
			left.Store(int64(writers))
			b.RunParallel(func(pb *testing.PB) {
				if left.Add(-1) < 0 {
					return
				}
				for pb.Next() {
					f, err := j.Append(body, nil, false)
					if err == nil {
						err = j.Sync(f.Number)
					}
					if err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
	b.Run("bare", func(b *testing.B) {
		f := bareFile(b)
		var end int64
		for b.Loop() {
			_, err := f.WriteAt(body, end)
			if err == nil {
				err = f.Sync()
			}
			if err != nil {
				b.Fatal(err)
			}
			end += int64(len(body))
		}
	})
}

func BenchmarkRead(b *testing.B) {
	j := onDisk(b)
	body := payload(1, 500)
	var at []Position
	for range 10_000 {
		f, err := j.Append(body, nil, false)
		require.NoError(b, err)
		at = append(at, f.Position)
	}
	b.Run("in order", func(b *testing.B) {
		b.SetBytes(int64(len(at) * len(body)))
		for b.Loop() {
			for _, err := range j.Frames(Position{}) {
				if err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("single", func(b *testing.B) {
		var i int
		for b.Loop() {
			if _, err := j.NewReader().Frame(at[i%len(at)]); err != nil {
				b.Fatal(err)
			}
			i += 7919
		}
	})
}

// BenchmarkOpen opens a journal whose last segment is full and unsynced, with
// and without the durable position from the index.
func BenchmarkOpen(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "journal")
	o := Options{SyncInterval: never}
	j, err := Open(dir, o)
	require.NoError(b, err)
	body := payload(1, 500)
	var last Frame
	for range 100_000 {
		last, err = j.Append(body, nil, false)
		require.NoError(b, err)
	}
	require.NoError(b, j.Close())
	known := o
	known.Durable, known.DurableEnd = last.Number, Position{Segment: last.Position.Segment, Offset: last.End}
	for name, o := range map[string]Options{"unknown": o, "known": known} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				j, err := Open(dir, o)
				if err == nil {
					err = j.Close()
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
