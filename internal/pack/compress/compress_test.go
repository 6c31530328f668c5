//test:sequential

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
