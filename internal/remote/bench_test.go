package remote

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// BenchmarkHead compares a call over a socket with a direct call and with a plain round trip.
func BenchmarkHead(b *testing.B) {
	e := memory(b)
	b.Run("engine", func(b *testing.B) { head(b, e) })
	b.Run("remote", func(b *testing.B) {
		c := serve(b, &wrapped{Engine: e}, socketPipe, ServerOptions{}, ClientOptions{})
		defer c.Close()
		head(b, c)
	})
	b.Run("bare", func(b *testing.B) {
		near, far := socketPipe(b)
		defer near.Close()
		go func() {
			buf := make([]byte, 64)
			for {
				if _, err := io.ReadFull(far, buf); err != nil {
					return
				}
				_, _ = far.Write(buf)
			}
		}()
		buf := make([]byte, 64)
		for b.Loop() {
			_, _ = near.Write(buf)
			_, err := io.ReadFull(near, buf)
			require.NoError(b, err)
		}
	})
}

func head(b *testing.B, e backend.Engine) {
	b.ReportAllocs()
	for b.Loop() {
		_, err := e.Head(background)
		require.NoError(b, err)
	}
}

// BenchmarkMissing reads a thread that is not there, so that the answer is an error.
func BenchmarkMissing(b *testing.B) {
	c := serve(b, &wrapped{Engine: memory(b)}, socketPipe, ServerOptions{}, ClientOptions{})
	defer c.Close()
	b.ReportAllocs()
	for b.Loop() {
		_, err := c.Run(background, structure.RunID{1})
		require.ErrorIs(b, err, backend.ErrNotFound)
	}
}
