package content

import (
	"bytes"
	"fmt"
	"io"
	"testing"
)

func BenchmarkHash(b *testing.B) {
	for _, size := range []int{500, AverageChunk, 1 << 20} {
		body := randomBytes(1, size)
		b.Run(fmt.Sprintf("id/%d", size), func(b *testing.B) {
			b.SetBytes(int64(size))
			for b.Loop() {
				Sum(body)
			}
		})
		b.Run(fmt.Sprintf("key/%d", size), func(b *testing.B) {
			b.SetBytes(int64(size))
			for b.Loop() {
				KeyOf(body)
			}
		})
	}
}

func BenchmarkChunker(b *testing.B) {
	body := randomBytes(1, 16<<20)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		c := NewChunker(bytes.NewReader(body))
		for {
			if _, err := c.Next(); err == io.EOF {
				break
			} else if err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkCut(b *testing.B) {
	for _, size := range []int{100 << 10, 16 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			body := randomBytes(1, size)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := Cut(b.Context(), bytes.NewReader(body), func(Key, []byte) error { return nil }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkTreeReader(b *testing.B) {
	body := randomBytes(1, 16<<20)
	store := make(chunkMap)
	_, root, err := Cut(b.Context(), bytes.NewReader(body), store.put)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("all", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := store.open(root).WriteTo(io.Discard); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("1 KiB at", func(b *testing.B) {
		p := make([]byte, 1<<10)
		tree := store.open(root)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := tree.ReadAt(p, root.Size/2); err != nil {
				b.Fatal(err)
			}
		}
	})
}
