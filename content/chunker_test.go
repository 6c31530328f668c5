package content

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/campaign"
)

// drainChunks returns the lengths of the chunks and the whole body.
func drainChunks(t require.TestingT, r io.Reader) (lengths []int, body []byte) {
	c := NewChunker(r)
	for {
		chunk, err := c.Next()
		if err == io.EOF {
			return lengths, body
		}
		require.NoError(t, err)
		lengths = append(lengths, len(chunk))
		body = append(body, chunk...)
	}
}

// ragged reads pieces of random sizes, some of them empty.
type ragged struct {
	r   io.Reader
	rng *rand.Rand
}

func (r ragged) Read(p []byte) (int, error) {
	return r.r.Read(p[:min(len(p), r.rng.IntN(3)*r.rng.IntN(70_000))])
}

func TestChunksDoNotDependOnReads(t *testing.T) {
	body := randomBytes(2, 1<<20)
	want, joined := drainChunks(t, bytes.NewReader(body))
	require.Equal(t, body, joined)
	for name, r := range map[string]io.Reader{
		"one byte":       iotest.OneByteReader(bytes.NewReader(body)),
		"half":           iotest.HalfReader(bytes.NewReader(body)),
		"end with bytes": iotest.DataErrReader(bytes.NewReader(body)),
	} {
		t.Run(name, func(t *testing.T) {
			got, joined := drainChunks(t, r)
			require.Equal(t, want, got)
			require.Equal(t, body, joined)
		})
	}
}

func TestChunksOfAnyBody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := drawBody(t, 400_000)
		want, joined := drainChunks(t, bytes.NewReader(body))
		require.True(t, bytes.Equal(body, joined))
		for i, n := range want {
			require.LessOrEqual(t, n, MaxChunk)
			if i < len(want)-1 {
				require.Greater(t, n, MinChunk)
			}
		}
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "reads"), 0))
		got, joined := drainChunks(t, ragged{bytes.NewReader(body), rng})
		require.Equal(t, want, got)
		require.True(t, bytes.Equal(body, joined))
	})
}

// drawBody draws a body of random ranges and ranges of one repeated byte, in
// which no cut is found before the largest size.
func drawBody(t *rapid.T, limit int) (body []byte) {
	// Lengths drawn by rapid would mostly be small.
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "lengths"), 0))
	for range rapid.IntRange(0, 4).Draw(t, "stretches") {
		n := rng.IntN(limit / 4)
		if rapid.Bool().Draw(t, "uniform") {
			body = append(body, bytes.Repeat([]byte{rapid.Byte().Draw(t, "byte")}, n)...)
		} else {
			body = append(body, randomBytes(rapid.Byte().Draw(t, "seed"), n)...)
		}
	}
	return body
}

func TestChunkSizes(t *testing.T) {
	lengths, _ := drainChunks(t, bytes.NewReader(randomBytes(3, 16<<20)))
	slices.Sort(lengths[:len(lengths)-1])
	average := 16 << 20 / len(lengths)
	require.InDelta(t, AverageChunk, average, AverageChunk/4)
	nearby := 0
	for _, n := range lengths {
		if n >= AverageChunk/2 && n <= AverageChunk*2 {
			nearby++
		}
	}
	require.Greater(t, nearby, len(lengths)*3/4, "most chunks are near the average")
}

func TestSmallBodiesAreOneChunk(t *testing.T) {
	for _, n := range []int{0, 1, MinChunk - 1, MinChunk} {
		lengths, _ := drainChunks(t, bytes.NewReader(randomBytes(4, n)))
		if n == 0 {
			require.Empty(t, lengths)
		} else {
			require.Equal(t, []int{n}, lengths)
		}
	}
}

func TestChunkerStopsAtError(t *testing.T) {
	boom := errors.New("boom")
	c := NewChunker(io.MultiReader(bytes.NewReader(randomBytes(5, 1<<20)), iotest.ErrReader(boom)))
	read := 0
	for {
		chunk, err := c.Next()
		if err != nil {
			require.ErrorIs(t, err, boom)
			break
		}
		read += len(chunk)
	}
	require.Less(t, read, 1<<20, "the unfinished end is no chunk")
	_, err := c.Next()
	require.ErrorIs(t, err, boom, "an error stays")
}

// idle returns no bytes and never ends.
type idle struct{}

func (idle) Read([]byte) (int, error) { return 0, nil }

func TestChunkerGivesUpOnIdleReader(t *testing.T) {
	_, err := NewChunker(idle{}).Next()
	require.ErrorIs(t, err, io.ErrNoProgress)
}

func TestChunkIsFencedOff(t *testing.T) {
	body := randomBytes(6, 256<<10)
	c := NewChunker(bytes.NewReader(body))
	first, err := c.Next()
	require.NoError(t, err)
	n := len(first)
	_ = append(first, 'x')
	second, err := c.Next()
	require.NoError(t, err)
	require.Equal(t, body[n:n+len(second)], second, "appending to a chunk leaves the next one alone")
}

// endless repeats a body.
type endless struct {
	body []byte
	off  int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.body[e.off:])
	e.off = (e.off + n) % len(e.body)
	return n, nil
}

func TestChunkerAllocatesNothing(t *testing.T) {
	c := NewChunker(&endless{body: randomBytes(7, 1<<20)})
	var err error
	require.Zero(t, campaign.Allocs(100, func() {
		if _, e := c.Next(); e != nil {
			err = e
		}
	}))
	require.NoError(t, err)
}
