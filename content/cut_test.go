package content

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime"
	"slices"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

func TestCut(t *testing.T) {
	body := randomBytes(10, 3<<20)
	store := make(chunkMap)
	id, root := store.cut(t, body)
	require.Equal(t, Sum(body), id)
	require.Equal(t, int64(len(body)), root.Size)
	require.NotZero(t, root.Height)
	for key, b := range store {
		require.Equal(t, KeyOf(b), key)
	}

	slow := make(chunkMap)
	slowID, slowRoot, err := Cut(t.Context(), iotest.OneByteReader(bytes.NewReader(body)), slow.put)
	require.NoError(t, err)
	require.Equal(t, id, slowID)
	require.Equal(t, root, slowRoot)
	require.Equal(t, store, slow)
}

func TestCutOfLittle(t *testing.T) {
	store := make(chunkMap)
	id, root := store.cut(t, nil)
	require.Equal(t, Sum(nil), id)
	require.True(t, root.IsZero())
	require.Empty(t, store)

	body := []byte("a body that is one chunk")
	id, root = store.cut(t, body)
	require.Equal(t, Sum(body), id)
	require.Equal(t, Root{Key: KeyOf(body), Size: int64(len(body))}, root)
	require.Equal(t, chunkMap{KeyOf(body): body}, store)
}

func TestEditCostsLittle(t *testing.T) {
	body := randomBytes(11, 10<<20)
	middle := len(body) / 2
	tests := []struct {
		name   string
		edited []byte
	}{
		{"a byte in front", slices.Concat([]byte("x"), body)},
		{"a byte in the middle", slices.Concat(body[:middle], []byte("x"), body[middle:])},
		{"a byte at the end", slices.Concat(body, []byte("x"))},
		{"a byte less in front", body[1:]},
		{"a paragraph replaced", slices.Concat(body[:middle], randomBytes(12, 700), body[middle+500:])},
	}
	store := make(chunkMap)
	_, before := store.cut(t, body)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			added := 0
			_, after, err := Cut(t.Context(), bytes.NewReader(tt.edited), func(key Key, b []byte) error {
				if _, ok := store[key]; !ok {
					added += len(b)
				}
				return nil
			})
			require.NoError(t, err)
			require.NotEqual(t, before.Key, after.Key)
			require.Positive(t, added)
			require.Less(t, added, len(body)/100)
		})
	}
}

func TestCutPassesErrorsOn(t *testing.T) {
	boom := errors.New("boom")
	body := randomBytes(13, 400_000)

	store := make(chunkMap)
	_, _, err := Cut(t.Context(), io.MultiReader(bytes.NewReader(body), iotest.ErrReader(boom)), store.put)
	require.ErrorIs(t, err, boom)

	// Every put may fail: those of chunks and that of the node above them.
	puts := 0
	_, _, err = Cut(t.Context(), bytes.NewReader(body), func(Key, []byte) error { puts++; return nil })
	require.NoError(t, err)
	for fail := range puts {
		n := 0
		id, root, err := Cut(t.Context(), bytes.NewReader(body), func(Key, []byte) error {
			if n++; n > fail {
				return boom
			}
			return nil
		})
		require.ErrorIs(t, err, boom)
		require.Equal(t, fail+1, n, "nothing is put after a failure")
		require.True(t, id.IsZero())
		require.True(t, root.IsZero())
	}

	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	_, _, err = Cut(ctx, bytes.NewReader(body), func(Key, []byte) error {
		if n++; n == 3 {
			cancel()
		}
		return nil
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 3, n)
}

// A stream is cut in constant memory. Total allocations are an upper bound of
// the memory in use.
func TestCutTakesBoundedMemory(t *testing.T) {
	const size = 32 << 20
	source := &endless{body: randomBytes(14, 5<<20+1)}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, root, err := Cut(t.Context(), io.LimitReader(source, size), func(Key, []byte) error { return nil })
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	require.Equal(t, int64(size), root.Size)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
}
