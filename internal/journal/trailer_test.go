package journal

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/vfs/crashfs"
)

// Payload and trailer are separated correctly, and the trailer can be decoded.
func TestTrailerRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.Uint64Range(1, maxNumber).Draw(t, "number")
		durable := rapid.Uint64Range(0, number).Draw(t, "durable")
		payload := rapid.SliceOf(rapid.Byte()).Draw(t, "payload")
		id := rapid.Uint64().Draw(t, "id")
		var once *Once
		switch {
		case rapid.Bool().Draw(t, "no session"):
		case rapid.Bool().Draw(t, "unknown"):
			once = &Once{Unknown: true}
		case rapid.Bool().Draw(t, "named") || number == 1:
			once = &Once{Sequence: rapid.Uint64().Draw(t, "sequence"), First: rapid.Bool().Draw(t, "first")}
			copy(once.Session[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "session"))
		default:
			once = &Once{Back: rapid.Uint64Range(1, number-1).Draw(t, "back"), Step: rapid.Int64().Draw(t, "step")}
		}
		trailer := appendTrailer(nil, id, once)
		require.LessOrEqual(t, len(trailer), maxTrailer)
		b, payloadAt := appendFrame(nil, 7, number, durable, false, payload, trailer)
		require.LessOrEqual(t, len(b), len(payload)+frameOverhead)
		f, ok := decodeFrame(b, 7)
		require.True(t, ok)
		want := Frame{Number: number, Durable: durable, ID: id, Once: once, PayloadOffset: int64(payloadAt)}
		want.Payload = append([]byte{}, payload...)
		require.Equal(t, want, f)
	})
}

// The cost of requests: nothing for a commit without one, a few bytes for consecutive requests.
func TestTrailerSize(t *testing.T) {
	require.Empty(t, appendTrailer(nil, 0, nil))
	require.Len(t, appendTrailer(nil, 0, (&OnceWrite{Sequence: 8, LastCommit: 999, LastSequence: 7}).as(1000, 1)), 3)
	require.Len(t, appendTrailer(nil, 0, (&OnceWrite{Sequence: 8, LastCommit: 900, LastSequence: 20}).as(1000, 1)), 3)
	require.Len(t, appendTrailer(nil, 0, (&OnceWrite{Sequence: 8, LastCommit: 900, LastSequence: 7}).as(1000, 950)), 19)
}

// The first commit after opening and the first of each segment state the id; a failed write does
// not count.
func TestWhichFramesStateTheID(t *testing.T) {
	disk := crashfs.New()
	var last uint64
	ids := map[uint64]bool{}
	for range 3 {
		j, err := Open("/store/journal", Options{FS: disk, SegmentSize: 4 << 10})
		require.NoError(t, err)
		require.NotContains(t, ids, j.ID())
		ids[j.ID()] = true
		first := last + 1
		for range 12 {
			f, err := j.Append(payload(1, 700), nil, false)
			require.NoError(t, err)
			require.Equal(t, j.ID(), f.ID)
			last = f.Number
		}
		segment := uint32(0)
		stated := 0
		for f, err := range j.Frames(Position{}) {
			require.NoError(t, err)
			if f.Mark || f.Number < first {
				continue
			}
			want := uint64(0)
			if f.Number == first || f.Position.Segment != segment {
				want, stated = j.ID(), stated+1
			}
			segment = f.Position.Segment
			require.Equal(t, want, f.ID, "commit %d", f.Number)
		}
		require.Greater(t, stated, 2)
		require.NoError(t, j.Close())
	}
}
