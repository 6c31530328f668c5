package compress

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Decompressing any part returns data of the claimed size or an error, and squeezed data is
// restored.
func FuzzExpand(f *testing.F) {
	dict := []byte("what every chapter may refer to")
	for _, raw := range []string{"", "abcabcabc", "what every chapter may refer to, and more", strings.Repeat("many times the same ", 400)} {
		for _, c := range []*Codec{{}, {Dict: dict}, {Dense: true}} {
			b, err := c.Squeeze([]byte(raw))
			require.NoError(f, err)
			f.Add(b, len(raw))
			c.Close()
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, size int) {
		if size > 1<<22 {
			return
		}
		for _, c := range []*Codec{{}, {Dict: dict}} {
			if out, err := c.Expand(b, int64(size)); err == nil {
				require.Len(t, out, size)
			}
			c.Close()
		}
		for _, c := range []*Codec{{}, {Dict: dict}, {Dense: true}} {
			packed, err := c.Squeeze(b)
			require.NoError(t, err)
			out, err := c.Expand(packed, int64(len(b)))
			require.NoError(t, err)
			require.True(t, bytes.Equal(b, out))
			c.Close()
		}
	})
}

// Parts of any size come back with a large dictionary, which is not copied for small ones.
func TestExpandWithDictionary(t *testing.T) {
	words := strings.Fields("a dictionary has what many parts have in common and they refer to it")
	text := func(n, step int) []byte {
		var b strings.Builder
		for i := 0; b.Len() < n; i++ {
			b.WriteString(words[(i*step+i/7)%len(words)])
		}
		return []byte(b.String()[:n])
	}
	c := &Codec{Dict: text(64<<10, 5)}
	defer c.Close()
	for _, size := range []int{1, 100, 2000, 64<<10/behindFrom - 1, 64 << 10 / behindFrom, 10_000, 100_000} {
		raw := text(size, 3)
		b, err := c.Squeeze(raw)
		require.NoError(t, err)
		out, err := c.Expand(b, int64(size))
		require.NoError(t, err)
		require.True(t, bytes.Equal(raw, out), size)
		_, err = c.Expand(b, int64(size)+1)
		require.Error(t, err)
	}
}
