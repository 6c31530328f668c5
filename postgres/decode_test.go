package postgres

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/lineage/backend"
)

// Rows of the log with a checksum that matches are decoded or refused; what was decoded is the same when it is written again.
func FuzzDecodeRow(f *testing.F) {
	once := &backend.Once{Session: [16]byte{1}, Sequence: 300}
	for _, commits := range [][]embedded.Sequenced{
		{{Payload: []byte("said")}},
		{{Payload: []byte("said"), Once: once}, {Payload: bytes.Repeat([]byte("again "), 1000), Unknown: true}},
	} {
		r := logRow{first: 1}
		for _, c := range commits {
			r.data = appendCommit(r.data, c)
			r.count++
		}
		require.NoError(f, r.seal())
		f.Add(r.data[:len(r.data)-4], r.count)
	}
	f.Add([]byte{rowCompressed, 0x28, 0xb5, 0x2f, 0xfd}, uint64(1))
	f.Add([]byte{rowPlain, 0xff, 0xff, 0xff, 0xff, 0x0f}, uint64(1))
	f.Fuzz(func(t *testing.T, data []byte, count uint64) {
		r := logRow{first: 7, id: 9, count: count, data: checked(data)}
		commits, err := r.commits()
		if err != nil {
			require.True(t, errors.Is(err, backend.ErrCorrupt) || errors.Is(err, backend.ErrNewerFormat), err)
			return
		}
		again := logRow{first: 7, id: 9, count: count}
		for i, c := range commits {
			require.EqualValues(t, 7+i, c.Number)
			again.data = appendCommit(again.data, c)
		}
		require.NoError(t, again.seal())
		is, err := again.commits()
		require.NoError(t, err)
		require.Equal(t, commits, is)
	})
}

// Entries of the server are restored or refused. Those with long keys have their keys in front of the value.
func FuzzRestored(f *testing.F) {
	for _, e := range []index.Entry{{Key: []byte("k"), Value: []byte("v")}, {Key: bytes.Repeat([]byte("long"), 700), Value: []byte{}}} {
		key, value := stored(e)
		f.Add(key, value)
	}
	f.Add(bytes.Repeat([]byte("k"), longKey+1), []byte{0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, key, value []byte) {
		e, err := restored(key, value)
		if err != nil {
			require.ErrorIs(t, err, backend.ErrCorrupt)
			return
		}
		k, v := stored(e)
		require.Equal(t, key, k)
		if !isLong(key) {
			require.Equal(t, present(value), present(v))
		}
		again, err := restored(k, v)
		require.NoError(t, err)
		require.Equal(t, e, again)
	})
}

// Values of entries as readers decode them: whatever the server has, it is a value or an error.
func FuzzValuesOfEntries(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4})
	f.Add(bytes.Repeat([]byte{0xff}, 60))
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, err := keys.ReadLocation(b); err == nil {
			again, err := keys.ReadLocation(p.Append(nil))
			require.NoError(t, err)
			require.Equal(t, p, again)
		}
		if tip, err := keys.ReadTip(b); err == nil {
			again, err := keys.ReadTip(keys.AppendTip(nil, tip))
			require.NoError(t, err)
			require.Equal(t, tip, again)
		}
		if run, err := keys.ReadRun([16]byte{1}, b); err == nil && !run.Home.Thread.IsZero() {
			again, err := keys.ReadRun([16]byte{1}, keys.AppendRun(nil, run))
			require.NoError(t, err)
			require.Equal(t, run, again)
		}
		_, _ = keys.ReadSpanLocation(b)
		var counts index.Counts
		if err := decodeCounts(b, &counts); err == nil {
			require.Equal(t, b, encodeCounts(counts))
		} else {
			require.ErrorIs(t, err, backend.ErrCorrupt)
		}
	})
}
