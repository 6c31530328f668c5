package index

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// machine runs the same operations on an index and a map.
type machine struct {
	dir       string
	db        *DB
	options   Options
	rewrite   uint64
	number    uint64
	now       model
	snapshots []pinned
}

type pinned struct {
	*Snapshot
	as model
}

func drawKey(t *rapid.T, known model) []byte {
	if keys := known.keys(); len(keys) > 0 && rapid.IntRange(0, 2).Draw(t, "known") > 0 {
		return []byte(rapid.SampledFrom(keys).Draw(t, "key"))
	}
	prefix := rapid.SampledFrom([]string{"", "s", "span/", "span/0000000000000000", "\xff\xff", "\x00"}).Draw(t, "prefix")
	tail := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 'a', 'b', 0xff}), 1, 40).Draw(t, "tail")
	return append([]byte(prefix), tail...)
}

func drawValue(t *rapid.T) []byte {
	size := rapid.SampledFrom([]int{0, 1, 20, 200, 3000}).Draw(t, "size")
	return bytes.Repeat(rapid.SliceOfN(rapid.Byte(), 1, 1).Draw(t, "byte"), size)
}

func (m *machine) open(t *rapid.T) {
	db, err := Open(filepath.Join(m.dir, "index.bolt"), m.options)
	require.NoError(t, err)
	db.limits = limits{leaves: 3, bytes: 4 << 10, rewrite: m.rewrite}
	if asOnWindows := rapid.Bool().Draw(t, "as on Windows"); asOnWindows {
		db.system = mappedFiles{grow: true, keepName: true}
	}
	db.bolt.NoSync = true // for speed: no power failures here
	m.db = db
}

func (m *machine) Apply(t *rapid.T) {
	var batch []Entry
	for range rapid.IntRange(0, 30).Draw(t, "entries") {
		e := Entry{Key: drawKey(t, m.now)}
		if rapid.IntRange(0, 3).Draw(t, "delete") > 0 {
			e.Value = drawValue(t)
		}
		batch = append(batch, e)
	}
	m.number++
	m.db.Apply(at(m.number), batch)
	m.now.apply(batch)
	require.NoError(t, m.db.Throttle())
}

func (m *machine) Snapshot(t *rapid.T) {
	if len(m.snapshots) < 4 {
		s := m.db.Snapshot()
		require.Equal(t, at(m.number), s.State())
		m.snapshots = append(m.snapshots, pinned{s, m.now.clone()})
	}
}

func (m *machine) Release(t *rapid.T) {
	if len(m.snapshots) == 0 {
		t.Skip("no snapshot")
	}
	i := rapid.IntRange(0, len(m.snapshots)-1).Draw(t, "snapshot")
	m.snapshots[i].Close()
	m.snapshots = append(m.snapshots[:i], m.snapshots[i+1:]...)
}

func (m *machine) Read(t *rapid.T) {
	p := pinned{m.db.Snapshot(), m.now}
	defer p.Close()
	require.NoError(t, m.now.checkGet(m.db, string(drawKey(t, m.now))))
	if len(m.snapshots) > 0 {
		p = m.snapshots[rapid.IntRange(0, len(m.snapshots)-1).Draw(t, "snapshot")]
	}
	from, to := drawKey(t, p.as), drawKey(t, p.as)
	require.NoError(t, p.as.checkGet(p.Snapshot, string(from)))
	require.NoError(t, p.as.checkScan(p.Snapshot, from, to))
	require.NoError(t, p.as.checkLast(p.Snapshot, from, to))
	require.NoError(t, p.as.checkLast(p.Snapshot, nil, to))
	require.NoError(t, p.as.checkLast(p.Snapshot, from, nil))
	p.skip(t, from, to)
}

// skip reads a range and skips some entries.
func (p pinned) skip(t *rapid.T, from, to []byte) {
	c := p.Cursor(from, to)
	for from != nil {
		want := p.as.between(from, to)
		e, ok, err := c.Next()
		require.NoError(t, err)
		require.Equal(t, len(want) > 0, ok)
		if !ok {
			return
		}
		require.Equal(t, want[0], string(e.Key))
		require.Equal(t, p.as[want[0]], string(e.Value))
		from = append([]byte(want[0]), 0)
		if rapid.Bool().Draw(t, "skip") {
			if key := drawKey(t, p.as); string(key) > string(from) {
				c.Skip(key)
				from = key
			}
		}
	}
}

func (m *machine) Checkpoint(t *rapid.T) {
	require.NoError(t, m.db.Checkpoint())
	require.Zero(t, m.db.active.Len())
	require.Nil(t, m.db.frozen)
}

func (m *machine) Compact(t *rapid.T) {
	require.NoError(t, m.db.Compact(t.Context(), nil))
	require.Zero(t, m.db.active.Len())
}

func (m *machine) Reopen(t *rapid.T) {
	for _, p := range m.snapshots {
		require.NoError(t, p.as.checkAll(p.Snapshot))
		p.Close()
	}
	m.snapshots = nil
	require.NoError(t, m.db.Close())
	m.open(t)
	require.Equal(t, at(m.number), m.db.State())
}

// Check is called after every operation.
func (m *machine) Check(t *rapid.T) {
	s := m.db.Snapshot()
	defer s.Close()
	require.NoError(t, m.now.checkScan(s, nil, nil))
}

func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "index")
		require.NoError(t, err)
		defer os.RemoveAll(dir)
		m := &machine{dir: dir, now: model{}, options: Options{OverlayBytes: rapid.SampledFrom([]int64{500, 5000, 1 << 20}).Draw(t, "overlay")}}
		m.rewrite = rapid.SampledFrom([]uint64{0, 20 << 10, never}).Draw(t, "rewrite")
		m.open(t)
		// A new index has no commit.
		m.number = 1
		m.db.Apply(at(1), nil)
		defer func() {
			for _, p := range m.snapshots {
				p.Close()
			}
			require.NoError(t, m.db.Close())
		}()
		t.Repeat(map[string]func(*rapid.T){
			"apply": m.Apply, "apply more": m.Apply, "snapshot": m.Snapshot, "release": m.Release,
			"read": m.Read, "checkpoint": m.Checkpoint, "compact": m.Compact, "reopen": m.Reopen, "": m.Check,
		})
		m.Reopen(t)
		s := m.db.Snapshot()
		defer s.Close()
		require.NoError(t, m.now.checkAll(s))
	})
}
