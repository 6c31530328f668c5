package postgres

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/lineage/backend"
)

func TestRow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := logRow{first: rapid.Uint64Range(1, 1<<40).Draw(t, "first"), id: rapid.Uint64Min(1).Draw(t, "id")}
		var want []embedded.Sequenced
		for range rapid.IntRange(1, 4).Draw(t, "count") {
			c := embedded.Sequenced{Number: r.first + r.count, ID: r.id, Payload: rapid.SliceOfN(rapid.Byte(), 1, 300).Draw(t, "payload")}
			c.Payload = bytes.Repeat(c.Payload, rapid.SampledFrom([]int{1, 1, 20}).Draw(t, "times")) // then they are compressed
			if c.Unknown = rapid.Bool().Draw(t, "unknown"); !c.Unknown && rapid.Bool().Draw(t, "once") {
				c.Once = &backend.Once{Session: [16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "session")), Sequence: rapid.Uint64().Draw(t, "sequence")}
			}
			want = append(want, c)
			r.data = appendCommit(r.data, c)
			r.count++
		}
		require.NoError(t, r.seal())
		got, err := r.commits()
		require.NoError(t, err)
		require.Equal(t, want, got)

		// No damage is taken for commits, also where somebody made the checksum right.
		damaged := r
		damaged.data = bytes.Clone(r.data)
		i := rapid.IntRange(0, len(r.data)-1).Draw(t, "at")
		damaged.data[i] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		_, err = damaged.commits()
		require.ErrorIs(t, err, backend.ErrCorrupt)
		cut := r
		cut.data = r.data[:i]
		_, err = cut.commits()
		require.ErrorIs(t, err, backend.ErrCorrupt)
		cut.data = checked(r.data[:i])
		_, _ = cut.commits() // does not panic
		if i < len(r.data)-4 {
			damaged.data = checked(damaged.data[:len(r.data)-4])
			_, _ = damaged.commits()
		}
		fewer := r
		fewer.count++
		_, err = fewer.commits()
		require.ErrorIs(t, err, backend.ErrCorrupt)
	})
	text := "Letters of a language have different frequencies, so that a text of a few hundred bytes takes less when it is compressed, also without repetition of any word."
	short := logRow{first: 1, count: 1, id: 1, data: appendCommit(nil, embedded.Sequenced{Payload: []byte(text + text[80:])})}
	was := len(short.data)
	require.NoError(t, short.seal())
	require.Less(t, len(short.data), was*4/5)
	newer := logRow{first: 1, count: 1, data: checked([]byte{rowCompressed + 1, 1, 1, 0})}
	_, err := newer.commits()
	require.ErrorIs(t, err, backend.ErrNewerFormat)
}

// checked returns data with a checksum that matches.
func checked(data []byte) []byte {
	return binary.LittleEndian.AppendUint32(bytes.Clone(data), crc32.Checksum(data, castagnoli))
}

// TestCompressedRow has rows that are compressed, rows for which that is of no use, and rows that are
// too large when they are expanded.
//
//test:norace
func TestCompressedRow(t *testing.T) {
	of := func(payload []byte) logRow {
		return logRow{first: 1, count: 1, data: appendCommit(nil, embedded.Sequenced{Payload: payload})}
	}
	random := make([]byte, 1<<20)
	_, _ = rand.Read(random)
	for _, c := range []struct {
		payload  []byte
		version  byte
		at, most int
	}{
		{bytes.Repeat([]byte("said "), 30), rowPlain, 150, 170},
		{bytes.Repeat([]byte("said "), 10_000), rowCompressed, 10, 500},
		{random, rowPlain, len(random), len(random) + 20},
	} {
		r := of(c.payload)
		require.NoError(t, r.seal())
		require.Equal(t, c.version, r.data[0])
		require.Less(t, len(r.data), c.most)
		require.Greater(t, len(r.data), c.at)
		commits, err := r.commits()
		require.NoError(t, err)
		require.Equal(t, c.payload, commits[0].Payload)
	}
	large := of(make([]byte, maxRow))
	require.ErrorIs(t, large.seal(), backend.ErrTooLarge)
	bomb := logRow{first: 1, count: 1, data: checked(compressor().EncodeAll(make([]byte, maxRow+1), []byte{rowCompressed}))}
	_, err := bomb.commits()
	require.ErrorIs(t, err, backend.ErrCorrupt)
	require.ErrorContains(t, err, "too large")
}

// TestDamagedLog changes the log behind the back of a store: verifying says so, and so does reading it.
//
//test:norace
func TestDamagedLog(t *testing.T) {
	for name, statement := range map[string]string{
		"a byte":  `UPDATE lineage_log SET data = set_byte(data, 5, get_byte(data, 5) # 1) WHERE n = 2`,
		"a gap":   `DELETE FROM lineage_log WHERE n = 2`,
		"a count": `UPDATE lineage_log SET count = 2 WHERE n = 3`,
	} {
		t.Run(name, func(t *testing.T) {
			pool := newPool(t, pgtest.DSN(t), nil)
			e := handle(t, pool, "s")
			for range 3 {
				createThread(t, e, backend.Full)
			}
			requireSound(t, e)
			_, err := pool.Exec(background, statement, exec)
			require.NoError(t, err)
			var problems []string
			for f, err := range e.Verify(background, backend.VerifyOptions{}) {
				if err != nil {
					problems = append(problems, err.Error())
					break
				}
				problems = append(problems, f.String())
			}
			require.NotEmpty(t, problems)
			witness, err := New(background, pool, Options{Store: "s", Unsafe: true})
			if err == nil {
				for _, err = range witness.Feed(background, backend.Cursor{}) {
				}
				require.NoError(t, witness.Close())
			}
			require.ErrorIs(t, err, backend.ErrCorrupt)
		})
	}
}
