package pack

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestLZReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.OneOf(
			rapid.SliceOfN(rapid.Byte(), 0, 40), rapid.SliceOfN(rapid.ByteRange('a', 'c'), 0, 40),
			rapid.Map(rapid.IntRange(0, 700), func(n int) []byte { return bytes.Repeat([]byte("ab"), n) }),
		)
		join := func(p [][]byte) []byte { return bytes.Join(p, nil) }
		dict := join(rapid.SliceOfN(piece, 0, 8).Draw(t, "dictionary"))
		m := newLZModel()
		w := newLZWriter(nil)
		packed := packedWhole(w, m, dict)
		r := newLZModel()
		out, err := r.unpack(packed, nil, len(dict), nil)
		require.NoError(t, err)
		require.True(t, bytes.Equal(dict, out))
		require.Equal(t, m, r)
		w = newLZWriter(dict)
		for range 3 {
			raw := join(rapid.SliceOfN(piece, 0, 8).Draw(t, "raw"))
			mw, mr := *m, *m
			packed := packedWhole(w, &mw, raw)
			out, err := mr.unpack(packed, dict, len(raw), nil)
			require.NoError(t, err)
			require.True(t, bytes.Equal(raw, out))
		}
	})
}

// Long runs, noise and copies of what came before, across windows.
func TestLZReadsBackWhatIsLong(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		var b []byte
		for len(b) < 1+r.IntN(60000) {
			switch r.IntN(3) {
			case 0:
				for range r.IntN(3000) {
					b = append(b, byte(r.Uint32()))
				}
			case 1:
				b = append(b, bytes.Repeat([]byte{byte(r.IntN(2))}, r.IntN(9000))...)
			case 2:
				if n := len(b); n > 0 {
					from := r.IntN(n)
					b = append(b, b[from:min(n, from+r.IntN(9000))]...)
				}
			}
		}
		dict := b[:r.IntN(len(b)+1)]
		raw := b[len(dict):]
		packed := packedWhole(newLZWriter(dict), newLZModel(), raw)
		out, err := newLZModel().unpack(packed, dict, len(raw), nil)
		require.NoError(t, err)
		require.True(t, bytes.Equal(raw, out), "seed %d", seed)
	}
}
