//test:race

package zframe_test

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/zframe"
)

var decoder = zframe.NewDecoder(1<<20, zstd.WithDecoderConcurrency(1))

func encoder(t testing.TB) *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

func TestExpand(t *testing.T) {
	e := encoder(t)
	for _, n := range []int{0, 1, 100, 255, 256, 257, 70000} {
		text := bytes.Repeat([]byte("x"), n)
		b := e.EncodeAll(text, nil)
		if n == 0 {
			continue // no frame
		}
		out, err := zframe.Expand(decoder, b, n)
		require.NoError(t, err)
		require.Equal(t, text, out)
		for _, other := range []int{n - 1, n + 1} {
			_, err = zframe.Expand(decoder, b, other)
			require.Error(t, err)
		}
		out, err = zframe.ExpandStated(decoder, b, 70000)
		require.NoError(t, err)
		require.Equal(t, text, out)
	}
	_, err := zframe.ExpandStated(decoder, e.EncodeAll(make([]byte, 70000), nil), 69999)
	require.ErrorIs(t, err, zframe.ErrTooLarge)
}

// Frames behind the first, and frames that do not state their sizes, take no more memory than is known.
func TestWhatFollowsIsNotExpanded(t *testing.T) {
	text := bytes.Repeat([]byte("text "), 1000)
	var more bytes.Buffer
	z, err := zstd.NewWriter(&more)
	require.NoError(t, err)
	_, err = z.Write(make([]byte, 64<<20))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	b := append(encoder(t).EncodeAll(text, nil), more.Bytes()...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = zframe.Expand(decoder, b, len(text))
	require.Error(t, err)
	_, err = zframe.ExpandStated(decoder, b, 1<<20)
	require.Error(t, err)
	_, err = zframe.ExpandStated(decoder, more.Bytes(), 1<<20)
	require.Error(t, err)
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<20))
}

func FuzzExpand(f *testing.F) {
	e := encoder(f)
	f.Add(e.EncodeAll([]byte("some text, some text, some text"), nil), 31)
	f.Add(e.EncodeAll(make([]byte, 5000), nil), 5000)
	f.Fuzz(func(t *testing.T, b []byte, size int) {
		size &= 1<<16 - 1
		if out, err := zframe.Expand(decoder, b, size); err == nil {
			require.Len(t, out, size)
		}
		if out, err := zframe.ExpandStated(decoder, b, 1<<16); err == nil {
			require.LessOrEqual(t, len(out), 1<<16)
		}
	})
}
