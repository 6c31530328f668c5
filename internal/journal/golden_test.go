package journal

import (
	"encoding/hex"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// requireGolden compares bytes on disk with those frozen in testdata. With
// LINEAGE_UPDATE_GOLDEN=1 it writes testdata, which breaks every existing store.
func requireGolden(t *testing.T, name string, b []byte) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if os.Getenv("LINEAGE_UPDATE_GOLDEN") == "1" {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(file, []byte(hex.Dump(b)), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, strings.ReplaceAll(string(want), "\r\n", "\n"), hex.Dump(b))
}

func goldenHeader() header {
	return header{
		segment: 0x01020304,
		first:   0x1112131415161718,
		store:   [16]byte{0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28, 0x29, 0x2a, 0x2b, 0x2c, 0x2d, 0x2e, 0x2f},
		salt:    [8]byte{0x30, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37},
		created: time.UnixMilli(1_700_000_000_123).UTC(),
	}
}

func TestGoldenHeader(t *testing.T) {
	b := goldenHeader().encode()
	requireGolden(t, "header", b)
	h, err := decodeHeader(b)
	require.NoError(t, err)
	require.Equal(t, goldenHeader(), h)
}

func TestGoldenFrames(t *testing.T) {
	h := goldenHeader()
	salt := crc32.Update(0, castagnoli, h.salt[:])
	session := [16]byte([]byte("sixteen bytes of"))
	tests := map[string]struct {
		number, durable uint64
		mark            bool
		payload         string
		id              uint64
		once            *Once
	}{
		"frame-first":   {number: 1, payload: "hello, lineage"},
		"frame-empty":   {number: 2, durable: 1},
		"frame-behind":  {number: 300_000, durable: 299_000, payload: "far from the last sync"},
		"frame-largest": {number: 1<<63 - 1, payload: "x"},
		"frame-mark":    {number: 70, durable: 70, mark: true},
		"frame-id":      {number: 3, durable: 3, payload: "the first", id: 0x0102030405060708},
		"frame-session": {number: 4, durable: 3, payload: "asked", id: 9, once: &Once{Session: session, Sequence: 1, First: true}},
		"frame-named":   {number: 500, durable: 3, payload: "asked", once: &Once{Session: session, Sequence: 200}},
		"frame-request": {number: 501, durable: 501, payload: "asked", once: &Once{Back: 1}},
		"frame-back":    {number: 901, durable: 901, payload: "asked", once: &Once{Back: 400, Step: -3}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b, payloadAt := appendFrame(nil, salt, tc.number, tc.durable, tc.mark, []byte(tc.payload), appendTrailer(nil, tc.id, tc.once))
			requireGolden(t, name, b)
			f, ok := decodeFrame(b, salt)
			require.True(t, ok)
			require.Equal(t, Frame{
				Number: tc.number, Durable: tc.durable, Mark: tc.mark, ID: tc.id, Once: tc.once,
				Payload: append([]byte{}, tc.payload...), PayloadOffset: int64(payloadAt),
			}, f)
		})
	}
}

func TestGoldenSegmentName(t *testing.T) {
	require.Equal(t, "0000000001.seg", segmentName(1))
	require.Equal(t, "4294967295.seg", segmentName(1<<32-1))
}
