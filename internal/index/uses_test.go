package index

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/sealed"
)

// usesShape has a table of uses, as the index of a store.
type usesShape struct{}

func (usesShape) Owners() []byte { return []byte("r") }

func (usesShape) Parts(first byte) []sealed.KeyPart {
	switch first {
	case 'r':
		return []sealed.KeyPart{{Kind: 0}}
	case 'u':
		return []sealed.KeyPart{{Size: 16}, {Size: 8}, {Size: 4}}
	}
	return nil
}

func (usesShape) Fields(dst []sealed.Field, key, _ []byte) []sealed.Field {
	if key[0] == 'u' {
		dst = append(dst, sealed.Field{Form: sealed.Ref, Kind: 0}, sealed.Field{Form: sealed.Number})
	}
	return dst
}

func (usesShape) Uses() (first byte, kind int) { return 'u', 0 }

func hashOf(kind string, n int) []byte {
	sum := sha256.Sum256(fmt.Append(nil, kind, n))
	return sum[:16]
}

// conversation makes the entries of a run that uses subjects.
func conversation(commit uint64, place uint32, run int, subjects []int) (batch []Entry) {
	batch = append(batch, Entry{Key: append([]byte("r"), hashOf("run", run)...), Value: []byte{}})
	for i, s := range subjects {
		key := binary.BigEndian.AppendUint64(append([]byte("u"), hashOf("subject", s)...), commit)
		value := append(binary.AppendUvarint(nil, uint64(i+1)), hashOf("run", run)...)
		batch = append(batch, Entry{Key: binary.BigEndian.AppendUint32(key, place+uint32(i)), Value: append(value, 0)})
	}
	return batch
}

// Uses are added, deleted and read above a sealed table that has series, which is made again and again.
func TestUsesModel(t *testing.T) {
	compacted := 0
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "index")
		require.NoError(t, err)
		defer os.RemoveAll(dir)
		m := &machine{dir: dir, now: model{}, options: Options{Shape: usesShape{}, OverlayBytes: rapid.SampledFrom([]int64{2000, 1 << 20}).Draw(t, "overlay")}}
		m.rewrite = rapid.SampledFrom([]uint64{0, 20 << 10, never}).Draw(t, "rewrite")
		m.open(t)
		defer func() {
			for _, p := range m.snapshots {
				p.Close()
			}
			require.NoError(t, m.db.Close())
		}()
		apply := func(batch []Entry) {
			m.number++
			m.db.Apply(at(m.number), batch)
			m.now.apply(batch)
			require.NoError(t, m.db.Throttle())
		}
		apply(nil)
		runs := 0
		lines := [][]int{{}}
		drop := func(gone func(key, value string) bool) {
			var batch []Entry
			for _, k := range m.now.keys() {
				if k[0] == 'u' && gone(k, m.now[k]) {
					batch = append(batch, Entry{Key: []byte(k)})
				}
			}
			apply(batch)
		}
		t.Repeat(map[string]func(*rapid.T){
			"say": func(t *rapid.T) {
				lines = append(lines, rapid.SliceOfN(rapid.IntRange(0, 200), 0, 60).Draw(t, "subjects"))
			},
			"fork": func(t *rapid.T) {
				var batch []Entry
				place := uint32(0)
				line := rapid.SampledFrom(lines).Draw(t, "line")
				for range rapid.IntRange(1, 8).Draw(t, "forks") {
					own := line[:rapid.IntRange(0, len(line)).Draw(t, "to")]
					batch = append(batch, conversation(m.number+1, place, runs, own)...)
					runs, place = runs+1, place+uint32(len(own)+rapid.IntRange(0, 2).Draw(t, "others"))
				}
				apply(batch)
			},
			"delete a run": func(t *rapid.T) {
				run := string(hashOf("run", rapid.IntRange(0, max(0, runs-1)).Draw(t, "run")))
				drop(func(_, value string) bool { return value[len(value)-17:len(value)-1] == run })
			},
			"erase": func(t *rapid.T) {
				subject := string(hashOf("subject", rapid.IntRange(0, 200).Draw(t, "subject")))
				drop(func(key, _ string) bool { return key[1:17] == subject })
			},
			"delete some": func(t *rapid.T) {
				drop(func(string, string) bool { return rapid.IntRange(0, 9).Draw(t, "gone") == 0 })
			},
			"read": func(t *rapid.T) {
				latest := pinned{m.db.Snapshot(), m.now}
				defer latest.Close()
				p := rapid.SampledFrom(append([]pinned{latest}, m.snapshots...)).Draw(t, "snapshot")
				subject := append([]byte("u"), hashOf("subject", rapid.IntRange(0, 200).Draw(t, "subject"))...)
				require.NoError(t, p.as.checkScan(p.Snapshot, subject, append(bytes.Clone(subject), 0xff)))
				from := binary.BigEndian.AppendUint64(bytes.Clone(subject), rapid.Uint64Range(0, m.number).Draw(t, "from"))
				require.NoError(t, p.as.checkScan(p.Snapshot, from, append(bytes.Clone(subject), 0xff)))
				require.NoError(t, p.as.checkLast(p.Snapshot, subject, from))
			},
			"snapshot": m.Snapshot, "release": m.Release, "checkpoint": m.Checkpoint, "reopen": m.Reopen, "": m.Check,
			"compact": func(t *rapid.T) { m.Compact(t); compacted++ },
		})
		m.Compact(t)
		m.Reopen(t)
		s := m.db.Snapshot()
		defer s.Close()
		require.NoError(t, m.now.checkAll(s))
	})
	t.Logf("%d tables", compacted)
}

// A table above which uses were deleted and added is rewritten with and without being sealed again.
func TestUsesBelowLeaves(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "index.bolt"), Options{Shape: usesShape{}})
	now, number := model{}, uint64(0)
	apply := func(batch []Entry) {
		number++
		db.Apply(at(number), batch)
		now.apply(batch)
	}
	line := make([]int, 100)
	for i := range line {
		line[i] = i
	}
	for run := range 60 {
		apply(conversation(number+1, 0, run, line[:1+run*7919%100]))
	}
	require.NoError(t, db.Compact(t.Context(), nil))
	stored, whole := db.base.file.table.Size()
	require.Less(t, stored, whole/20)
	var batch []Entry
	for i, k := range now.keys() {
		if k[0] == 'u' && i%3 == 0 {
			batch = append(batch, Entry{Key: []byte(k)})
		}
	}
	apply(batch)
	apply(conversation(number+1, 0, 100, line))
	for range 2 {
		s := db.Snapshot()
		require.NoError(t, now.checkAll(s))
		for i := range 100 {
			subject := append([]byte("u"), hashOf("subject", i)...)
			require.NoError(t, now.checkScan(s, subject, append(bytes.Clone(subject), 0xff)))
		}
		s.Close()
		require.NoError(t, db.Checkpoint())
	}
	require.NoError(t, db.Compact(t.Context(), nil))
	s := db.Snapshot()
	defer s.Close()
	require.NoError(t, now.checkAll(s))
}
