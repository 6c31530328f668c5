package content

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestTreeReaderIsAReader(t *testing.T) {
	for _, n := range []int{0, 1, 2, 1000} {
		t.Run(fmt.Sprint(n, " chunks"), func(t *testing.T) {
			store := make(chunkMap)
			root := store.build(t, tinyChunks(n))
			require.NoError(t, iotest.TestReader(store.open(root), join(tinyChunks(n))))
		})
	}
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := drawBody(t, 1<<20)
		store := make(chunkMap)
		id, root := store.cut(t, body)
		require.Equal(t, Sum(body), id)

		var out bytes.Buffer
		n, err := store.open(root).WriteTo(&out)
		require.NoError(t, err)
		require.Equal(t, int64(len(body)), n)
		require.True(t, bytes.Equal(body, out.Bytes()))

		got, err := io.ReadAll(VerifyReader(store.open(root), id))
		require.NoError(t, err)
		require.True(t, bytes.Equal(body, got))
	})
}

// Reads after any moves in a deep tree return the bytes of the body.
func TestMovesInDeepTree(t *testing.T) {
	store := make(chunkMap)
	root := store.build(t, tinyChunks(40_000))
	body := join(tinyChunks(40_000))
	require.Equal(t, uint8(3), root.Height)
	rapid.Check(t, func(t *rapid.T) {
		tree, plain := store.open(root), bytes.NewReader(body)
		off := func() int64 { return rapid.Int64Range(0, int64(len(body))+10).Draw(t, "offset") }
		size := func() int { return rapid.IntRange(0, 3000).Draw(t, "size") }
		t.Repeat(map[string]func(*rapid.T){
			"read": func(t *rapid.T) {
				got, want := make([]byte, size()), []byte(nil)
				n, err := io.ReadFull(tree, got)
				want = make([]byte, len(got))
				m, wantErr := io.ReadFull(plain, want)
				require.Equal(t, wantErr, err)
				require.Equal(t, want[:m], got[:n])
			},
			"read at": func(t *rapid.T) {
				got, at := make([]byte, size()), off()
				n, err := tree.ReadAt(got, at)
				want := make([]byte, len(got))
				m, wantErr := plain.ReadAt(want, at)
				if len(got) > 0 { // bytes.Reader reports the end even for empty reads
					require.Equal(t, wantErr, err)
				}
				require.Equal(t, want[:m], got[:n])
			},
			"seek": func(t *rapid.T) {
				to, whence := off(), rapid.IntRange(io.SeekStart, io.SeekEnd).Draw(t, "whence")
				if whence != io.SeekStart {
					to -= int64(len(body)) / 2
				}
				got, err := tree.Seek(to, whence)
				want, wantErr := plain.Seek(to, whence)
				require.Equal(t, wantErr == nil, err == nil)
				if err == nil {
					require.Equal(t, want, got)
				}
			},
		})
	})
}

func TestReadAtByManyAtOnce(t *testing.T) {
	body := randomBytes(21, 1<<20)
	store := make(chunkMap)
	_, root := store.cut(t, body)
	tree := store.open(root)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for off := i * 1000; off < len(body); off += 50_000 {
				got := make([]byte, min(30_000, len(body)-off))
				n, err := tree.ReadAt(got, int64(off))
				if err != nil || !bytes.Equal(body[off:off+n], got) {
					t.Errorf("at %d: %d bytes, %v", off, n, err)
				}
			}
		})
	}
	wg.Wait()
}

// Only the nodes and chunks on the path are fetched, once.
func TestReadFetchesOnlyTheWay(t *testing.T) {
	store := make(chunkMap)
	root := store.build(t, tinyChunks(40_000))
	fetched, calls := 0, 0
	tree := OpenTree(t.Context(), root, func(ctx context.Context, keys []Key) ([][]byte, error) {
		calls++
		fetched += len(keys)
		return store.get(ctx, keys)
	})
	require.Zero(t, fetched)
	_, err := tree.ReadAt(make([]byte, 4), 80_000)
	require.NoError(t, err)
	require.Equal(t, int(root.Height)+1, fetched)

	fetched, calls = 0, 0
	_, err = io.Copy(io.Discard, tree)
	require.NoError(t, err)
	require.Equal(t, len(store), fetched)
	require.Less(t, calls, fetched/16, "many at a time")
}

func TestSeekRefuses(t *testing.T) {
	store := make(chunkMap)
	_, root := store.cut(t, []byte("abc"))
	tree := store.open(root)
	_, err := tree.Seek(1, io.SeekStart)
	require.NoError(t, err)
	_, err = tree.Seek(-2, io.SeekCurrent)
	require.ErrorIs(t, err, errNegativeOffset)
	_, err = tree.Seek(0, 3)
	require.ErrorIs(t, err, errWhence)
	_, err = tree.Seek(math.MaxInt64, io.SeekCurrent)
	require.ErrorIs(t, err, errNegativeOffset, "an overflow is refused")
	_, err = tree.ReadAt(make([]byte, 1), -1)
	require.ErrorIs(t, err, errNegativeOffset)
	rest, err := io.ReadAll(tree)
	require.NoError(t, err)
	require.Equal(t, "bc", string(rest), "a failure moves nothing")
}

func TestReadAfterFailureGoesOn(t *testing.T) {
	body := join(tinyChunks(3000))
	store := make(chunkMap)
	root := store.build(t, tinyChunks(3000))
	boom := errors.New("boom")
	calls := 0
	tree := OpenTree(t.Context(), root, func(ctx context.Context, keys []Key) ([][]byte, error) {
		if calls++; calls%3 == 0 {
			return nil, boom
		}
		return store.get(ctx, keys)
	})
	var got bytes.Buffer
	failures := 0
	for got.Len() < len(body) {
		if _, err := tree.WriteTo(&got); err != nil {
			require.ErrorIs(t, err, boom)
			failures++
		}
	}
	require.Positive(t, failures)
	require.Equal(t, body, got.Bytes())
}

func TestMissingChunkIsNoEnd(t *testing.T) {
	store := make(chunkMap)
	_, root := store.cut(t, []byte("abc"))
	tree := OpenTree(t.Context(), root, func(context.Context, []Key) ([][]byte, error) { return nil, io.EOF })
	_, err := io.ReadAll(tree)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.NotErrorIs(t, err, io.EOF)
}

func TestReadOfCancelledContext(t *testing.T) {
	store := make(chunkMap)
	_, root := store.cut(t, []byte("abc"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := io.ReadAll(OpenTree(ctx, root, store.get))
	require.ErrorIs(t, err, context.Canceled)
}

// short writes fewer bytes than given, without an error.
type short struct{}

func (short) Write(p []byte) (int, error) { return len(p) - 1, nil }

func TestWriteToStopsAtWriter(t *testing.T) {
	store := make(chunkMap)
	_, root := store.cut(t, []byte("abc"))
	n, err := store.open(root).WriteTo(short{})
	require.ErrorIs(t, err, io.ErrShortWrite)
	require.Equal(t, int64(2), n)
}

func TestVerifyReader(t *testing.T) {
	body := randomBytes(22, 10_000)
	require.NoError(t, iotest.TestReader(VerifyReader(bytes.NewReader(body), Sum(body)), body))

	for _, other := range [][]byte{nil, body[1:], append(bytes.Clone(body), 0)} {
		for _, r := range []io.Reader{bytes.NewReader(other), iotest.DataErrReader(bytes.NewReader(other))} {
			v := VerifyReader(r, Sum(body))
			got, err := io.ReadAll(v)
			require.ErrorIs(t, err, ErrMismatch)
			require.EqualError(t, err, "body "+Sum(body).String()+": content does not match its hash")
			require.Equal(t, len(other), len(got))
			_, err = v.Read(make([]byte, 1))
			require.ErrorIs(t, err, ErrMismatch, "an error stays")
		}
	}

	boom := errors.New("boom")
	_, err := io.ReadAll(VerifyReader(iotest.ErrReader(boom), Sum(nil)))
	require.ErrorIs(t, err, boom)
}
