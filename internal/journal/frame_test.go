package journal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure/structuretest"
)

func TestFrameRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		salt := rapid.Uint32().Draw(t, "salt")
		number := rapid.Uint64Range(1, 1<<63-1).Draw(t, "number")
		durable := rapid.Uint64Range(0, number).Draw(t, "durable")
		mark := rapid.Bool().Draw(t, "mark")
		var body []byte
		if !mark {
			body = rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "payload")
		}
		before := rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "before")
		b, payloadAt := appendFrame(bytes.Clone(before), salt, number, durable, mark, body, nil)
		require.Equal(t, before, append([]byte{}, b[:len(before)]...))
		b = b[len(before):]
		require.LessOrEqual(t, len(b), len(body)+frameOverhead)
		require.GreaterOrEqual(t, len(b), minFrame)
		require.Equal(t, int64(len(b)), frameSize(b))
		f, ok := decodeFrame(b, salt)
		require.True(t, ok)
		require.Equal(t, number, f.Number)
		require.Equal(t, durable, f.Durable)
		require.Equal(t, mark, f.Mark)
		require.Equal(t, int64(payloadAt), f.PayloadOffset)
		require.True(t, bytes.Equal(body, f.Payload))

		_, ok = decodeFrame(b, salt+1)
		require.False(t, ok, "another segment's frame")
	})
}

func TestFrameRefuses(t *testing.T) {
	const salt = 7
	seal := func(body ...byte) []byte {
		b := make([]byte, frameHeader, frameHeader+len(body))
		b = append(b, body...)
		binary.LittleEndian.PutUint32(b, uint32(len(body)))
		binary.LittleEndian.PutUint32(b[4:], frameChecksum(salt, b))
		return b
	}
	_, ok := decodeFrame(seal(2, 2), salt)
	require.True(t, ok, "the others are variants of it")
	lengthOff := seal(2, 2, 'x')
	binary.LittleEndian.PutUint32(lengthOff, 2)
	binary.LittleEndian.PutUint32(lengthOff[4:], frameChecksum(salt, lengthOff))
	tests := map[string][]byte{
		"nothing":               nil,
		"no body":               seal(),
		"no lag":                seal(2),
		"endless number":        seal(0x80, 0x80),
		"number too long":       seal(0x82, 0x00, 2),
		"lag too long":          seal(2, 0x82, 0x00),
		"number over 64 bits":   seal(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 2),
		"more lag than commits": seal(2, 4),
		"no trailer":            seal(2, 1),
		"an empty trailer":      seal(2, 1, 0),
		"a trailer too long":    seal(2, 1, 1, 2),
		"a trailer of nothing":  seal(2, 1, 0, 1),
		"an unknown flag":       seal(2, 1, 8, 1),
		"a request not known":   seal(2, 1, 6, 0, 1),
		"an id cut short":       seal(2, 1, 1, 9, 9, 3),
		"an id of zero":         seal(2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 9),
		"behind an id":          seal(2, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 7, 10),
		"a session cut short":   seal(2, 1, 2, 1, 7, 3),
		"back before the first": seal(2, 1, 2, 2, 0, 3),
		"mark with a trailer":   seal(3, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 9),
		"mark with a payload":   seal(3, 0, 'x'),
		"trailing byte":         append(seal(2, 2), 0),
		"another length":        lengthOff,
	}
	for name, b := range tests {
		t.Run(name, func(t *testing.T) {
			_, ok := decodeFrame(b, salt)
			require.False(t, ok)
		})
	}
}

// A frame that claims more data than it has is refused, or decodes to no more than its
// bytes.
func TestInflatedFrame(t *testing.T) {
	const salt = 7
	whole, _ := appendFrame(nil, salt, 1000, 990, false, payload(1, 200), nil)
	for at := frameHeader; at < frameHeader+10; at++ {
		for b := range structuretest.Inflated(whole, at) {
			binary.LittleEndian.PutUint32(b, uint32(len(b)-frameHeader))
			binary.LittleEndian.PutUint32(b[4:], frameChecksum(salt, b))
			allocated := structuretest.Allocated(func() {
				if f, ok := decodeFrame(b, salt); ok {
					require.LessOrEqual(t, f.PayloadOffset+int64(len(f.Payload)), int64(len(b)))
					require.LessOrEqual(t, f.Durable, f.Number)
				}
			})
			require.LessOrEqual(t, allocated, uint64(64<<10), "%x", b[:40])
		}
	}
}

func TestFrameSizeRefuses(t *testing.T) {
	size := func(n uint32) int64 { return frameSize(binary.LittleEndian.AppendUint32(nil, n)) }
	require.Zero(t, size(0))
	require.Zero(t, size(1))
	require.Equal(t, int64(minFrame), size(2))
	require.Equal(t, int64(MaxPayload+frameOverhead+frameHeader), size(MaxPayload+frameOverhead))
	require.Zero(t, size(MaxPayload+frameOverhead+1))
	require.Zero(t, size(1<<32-1))
}

func TestFrameDetectsEveryFlippedBit(t *testing.T) {
	b, _ := appendFrame(nil, 1, 1000, 990, false, payload(1, 200), nil)
	for i := range b {
		for bit := range 8 {
			b[i] ^= 1 << bit
			_, ok := decodeFrame(b, 1)
			require.False(t, ok, "byte %d bit %d", i, bit)
			b[i] ^= 1 << bit
		}
	}
}

func TestHeaderRefuses(t *testing.T) {
	reseal := func(change func(b []byte)) []byte {
		b := goldenHeader().encode()
		change(b)
		binary.LittleEndian.PutUint32(b[60:], crc32.Checksum(b[:60], castagnoli))
		return b
	}
	tests := map[string]struct {
		b    []byte
		want string
	}{
		"empty":      {nil, "no header"},
		"short":      {goldenHeader().encode()[:headerSize-1], "no header"},
		"zeros":      {make([]byte, headerSize), "no header"},
		"magic":      {reseal(func(b []byte) { b[0]++ }), "not a journal segment"},
		"segment 0":  {reseal(func(b []byte) { clear(b[12:16]) }), "numbers begin with 1"},
		"commit 0":   {reseal(func(b []byte) { clear(b[16:24]) }), "numbers begin with 1"},
		"version 0":  {reseal(func(b []byte) { clear(b[8:12]) }), "journal format 0"},
		"undefined":  {reseal(func(b []byte) { b[56] = 1 }), "undefined"},
		"checksum":   {append(goldenHeader().encode()[:63], 0), "checksum does not match"},
		"commit max": {reseal(func(b []byte) { binary.LittleEndian.PutUint64(b[16:], 1<<63) }), "too large"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := decodeHeader(tc.b)
			require.ErrorContains(t, err, tc.want)
			require.NotErrorIs(t, err, backend.ErrNewerFormat)
		})
	}
}

func TestHeaderOfNewerFormat(t *testing.T) {
	b := goldenHeader().encode()
	b[8] = 9
	clear(b[12:]) // a future layout
	_, err := decodeHeader(b)
	require.ErrorIs(t, err, backend.ErrNewerFormat)
	require.ErrorContains(t, err, "journal format 9")
	require.ErrorContains(t, err, fmt.Sprint("up to ", FormatVersion))
}

func TestSegmentNumber(t *testing.T) {
	for _, name := range []string{
		"0000000000.seg", "1.seg", "00000000001.seg", "4294967296.seg", "0000000001.seg.64.cut",
		"0000000001", "+000000001.seg", "0000000001.SEG", "", ".seg",
	} {
		_, ok := segmentNumber(name)
		require.False(t, ok, name)
	}
	n, ok := segmentNumber("0000000012.seg")
	require.True(t, ok)
	require.Equal(t, uint32(12), n)
}

func FuzzDecodeFrame(f *testing.F) {
	for _, seed := range []struct {
		number, durable uint64
		mark            bool
		payload         string
	}{{1, 0, false, ""}, {2, 1, false, "payload"}, {1 << 40, 3, false, "x"}, {9, 9, true, ""}} {
		b, _ := appendFrame(nil, 5, seed.number, seed.durable, seed.mark, []byte(seed.payload), nil)
		f.Add(b, uint32(5))
	}
	for _, once := range []*Once{nil, {Session: [16]byte{1}, Sequence: 1, First: true}, {Session: [16]byte{2}, Sequence: 300}, {Back: 2, Step: -1}} {
		b, _ := appendFrame(nil, 5, 9, 8, false, []byte("payload"), appendTrailer(nil, 7, once))
		f.Add(b, uint32(5))
	}
	f.Add([]byte{}, uint32(0))
	f.Add(bytes.Repeat([]byte{0xff}, 40), uint32(0))
	f.Fuzz(func(t *testing.T, b []byte, salt uint32) {
		check := func() {
			frame, ok := decodeFrame(b, salt)
			if !ok {
				return
			}
			again, at := appendFrame(nil, salt, frame.Number, frame.Durable, frame.Mark, frame.Payload, appendTrailer(nil, frame.ID, frame.Once))
			require.Equal(t, b, again, "one form only")
			require.Equal(t, frame.PayloadOffset, int64(at))
		}
		check()
		if len(b) < frameHeader {
			return
		}
		// The code after the checks of length and checksum.
		b = bytes.Clone(b)
		binary.LittleEndian.PutUint32(b, uint32(len(b)-frameHeader))
		binary.LittleEndian.PutUint32(b[4:], frameChecksum(salt, b))
		check()
	})
}

func FuzzDecodeHeader(f *testing.F) {
	f.Add(goldenHeader().encode())
	f.Add([]byte{})
	f.Add(make([]byte, headerSize))
	f.Fuzz(func(t *testing.T, b []byte) {
		check := func() {
			if h, err := decodeHeader(b); err == nil {
				require.Equal(t, b[:headerSize], h.encode(), "one form only")
			}
		}
		check()
		if len(b) < headerSize {
			return
		}
		b = bytes.Clone(b)
		copy(b, goldenHeader().encode()[:12])
		binary.LittleEndian.PutUint32(b[60:], crc32.Checksum(b[:60], castagnoli))
		check()
	})
}
