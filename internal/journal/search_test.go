package journal

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestRangeSumsEqualChecksums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		salt := rapid.Uint32().Draw(t, "salt")
		b := payload(rapid.IntRange(1, 1000).Draw(t, "seed"), rapid.IntRange(frameHeader, 5*stride).Draw(t, "size"))
		sums := newRangeSums(b)
		start := rapid.IntRange(0, len(b)-frameHeader).Draw(t, "start")
		end := rapid.IntRange(start+frameHeader, len(b)).Draw(t, "end")
		require.Equal(t, frameChecksum(salt, b[start:end]), sums.frame(salt, start, end))
	})
}

func TestRangeSumsOfALongRange(t *testing.T) {
	b := payload(1, 17<<20) // more than three bytes count
	sums := newRangeSums(b)
	for _, r := range [][2]int{{0, len(b)}, {1, len(b) - 1}, {stride - 1, 1<<24 + stride + 7}} {
		require.Equal(t, frameChecksum(3, b[r[0]:r[1]]), sums.frame(3, r[0], r[1]))
	}
}

func TestFramesAmong(t *testing.T) {
	const salt = 11
	frame := func(number, durable uint64, n int) []byte {
		b, _ := appendFrame(nil, salt, number, durable, false, payload(int(number), n), nil)
		return b
	}
	mark := func(number uint64) []byte {
		b, _ := appendFrame(nil, salt, number, number, true, nil, nil)
		return b
	}
	foreign, _ := appendFrame(nil, salt+1, 12, 11, false, payload(1, 30), nil)
	torn := frame(11, 10, 200)
	torn[100]++
	inside, _ := appendFrame(nil, salt, 11, 9, false, frame(12, 11, 10), nil)
	tests := map[string]struct {
		b    []byte
		want laterFrames
	}{
		"nothing":                          {nil, laterFrames{}},
		"zeros":                            {make([]byte, 5000), laterFrames{}},
		"ones":                             {bytes.Repeat([]byte{0xff}, 5000), laterFrames{}},
		"half a frame":                     {frame(11, 10, 100)[:60], laterFrames{}},
		"a damaged frame":                  {torn, laterFrames{}},
		"the next behind it":               {append(torn, frame(12, 10, 50)...), laterFrames{found: true, number: 12, durable: 10}},
		"one that knows it durable":        {append(torn, frame(12, 11, 50)...), laterFrames{found: true, number: 12, durable: 11}},
		"the one that knows most":          {bytes.Join([][]byte{torn, frame(12, 10, 50), mark(12), frame(13, 12, 5)}, nil), laterFrames{found: true, number: 12, durable: 12}},
		"a mark of the last good one":      {append([]byte("xx"), mark(10)...), laterFrames{found: true, number: 10, durable: 10}},
		"of an earlier commit":             {append(torn, frame(9, 8, 50)...), laterFrames{}},
		"of the last good commit":          {append(torn, frame(10, 9, 50)...), laterFrames{}},
		"of a commit that cannot be there": {append([]byte("xx"), frame(12, 11, 50)...), laterFrames{}},
		"of another segment":               {append(torn, foreign...), laterFrames{}},
		"inside a frame that is whole":     {inside, laterFrames{found: true, number: 11, durable: 9}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.want, framesAmong(bytes.Clone(tc.b), salt, 10))
		})
	}
}

// A tail in which every byte might start a frame takes linear time; otherwise
// the test would not end.
//
//test:norace
func TestFramesAmongManyCandidates(t *testing.T) {
	const n = 4 << 20
	b := make([]byte, n)
	for i := 0; i+4 <= n; i += 4 {
		binary.LittleEndian.PutUint32(b[i:], 0x00020202)
	}
	last, _ := appendFrame(nil, 1, 2, 1, false, []byte("found all the same"), nil)
	copy(b[n-len(last):], last)
	require.Equal(t, laterFrames{found: true, number: 2, durable: 1}, framesAmong(b, 1, 0))
}
