package sealed

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
)

// Frames behind the first, which do not state their sizes, are not expanded.
func TestFurtherFramesAreNotExpanded(t *testing.T) {
	text := bytes.Repeat([]byte("text "), 1000)
	b := compress(nil, text)
	require.Less(t, len(b), len(text))
	var more bytes.Buffer
	z, err := zstd.NewWriter(&more)
	require.NoError(t, err)
	_, err = z.Write(make([]byte, 64<<20))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	b = append(b, more.Bytes()...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = expand(b, len(text))
	runtime.ReadMemStats(&after)
	require.ErrorIs(t, err, ErrDamaged)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<20))
}
