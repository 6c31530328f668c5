package pack

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestMixReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.OneOf(
			rapid.SliceOfN(rapid.Byte(), 0, 40), rapid.SliceOfN(rapid.ByteRange('a', 'c'), 0, 40),
			rapid.Map(rapid.IntRange(0, 700), func(n int) []byte { return bytes.Repeat([]byte("ab"), n) }),
		)
		raw := bytes.Join(rapid.SliceOfN(piece, 0, 8).Draw(t, "raw"), nil)
		back, err := unmixed(mixedWhole(raw), len(raw), nil)
		require.NoError(t, err)
		require.True(t, bytes.Equal(raw, back))
	})
}

// Noise, runs, and copies with bytes that differ here and there.
func TestMixReadsBackWhatIsLong(t *testing.T) {
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 2))
		var b []byte
		for len(b) < 1+r.IntN(60000) {
			switch r.IntN(5) {
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
					for at := n + r.IntN(200); at < len(b); at += 1 + r.IntN(200) {
						b[at] = "x\n\\\""[r.IntN(4)]
					}
				}
			case 3, 4: // a piece, escaped or the reverse
				if n := len(b); n > 0 {
					from := r.IntN(n)
					piece := string(b[from:min(n, from+r.IntN(3000))])
					if r.IntN(2) == 0 {
						b = append(b, strings.NewReplacer("\n", `\n`, `"`, `\"`, `\`, `\\`).Replace(piece)...)
					} else {
						b = append(b, strings.NewReplacer(`\n`, "\n", `\"`, `"`, `\\`, `\`).Replace(piece)...)
					}
				}
			}
		}
		back, err := unmixed(mixedWhole(b), len(b), nil)
		require.NoError(t, err)
		require.True(t, bytes.Equal(b, back), "seed %d", seed)
	}
}

// What is there as text and as a JSON string is there once.
func TestMixSeesThroughEscapes(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var text []byte
	for len(text) < 20000 {
		for range 1 + r.IntN(12) {
			text = strconv.AppendUint(text, r.Uint64()%1000, 36)
			text = append(text, " \t,\""[r.IntN(4)])
		}
		text = append(text, '\n')
	}
	quoted, err := json.Marshal(string(text))
	require.NoError(t, err)
	for _, both := range [][2][]byte{{text, quoted}, {quoted, text}, {quoted, quoted}} {
		once, twice := len(mixedWhole(both[0])), len(mixedWhole(bytes.Join(both[:], nil)))
		require.Less(t, twice-once, 300, "of %d", once)
	}
}

// The tables decide what the bytes of a pack mean, so they must never change.
func TestMixTables(t *testing.T) {
	h := sha256.New()
	for _, v := range []any{chanceOf, logitOf, nextHistory, firstChance} {
		require.NoError(t, binary.Write(h, binary.LittleEndian, v))
	}
	require.Equal(t, "c64435d256148070db2fc6dad10e0b30a0ebd65ed9f4446a31020d0029866849", hex.EncodeToString(h.Sum(nil)))
	for i, v := range logitOf {
		require.InDelta(t, i, int(chanceOf[int(v)+2048])>>4, 24)
	}
	for bit := range nextHistory {
		for _, v := range nextHistory[bit] {
			require.NotZero(t, firstChance[v], "a history that is not numbered")
		}
	}
}

func FuzzMix(f *testing.F) {
	f.Add([]byte("abcabcabc"), 100)
	f.Add(mixedWhole([]byte("some words and some more words and some more words and some more words")), 71)
	f.Fuzz(func(t *testing.T, b []byte, size int) {
		if size < 0 || size > 1<<16 {
			return
		}
		out, err := unmixed(b, size, nil)
		if err == nil {
			require.Len(t, out, size)
		}
		back, err := unmixed(mixedWhole(b), len(b), nil)
		require.NoError(t, err)
		require.True(t, bytes.Equal(b, back))
	})
}
