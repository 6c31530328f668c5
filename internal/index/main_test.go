package index

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// golden compares bytes with a file under testdata, or rewrites the file on
// request.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if os.Getenv("LINEAGE_UPDATE_GOLDEN") == "1" {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, want, got, "these bytes are on disk: changing them needs a new version of the format")
}

func newPath(t testing.TB) string { return filepath.Join(t.TempDir(), "index.bolt") }

// open opens an index and closes it at the end of the test.
func open(t testing.TB, path string, o Options) *DB {
	t.Helper()
	db, err := Open(path, o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// at is the state after a commit.
func at(number uint64) State {
	return State{Store: [16]byte{15: 1}, Number: number, Segment: uint32(number / 100), Offset: int64(number) * 1000}
}

// A model is the expected contents of an index.
type model map[string]string

func (m model) clone() model {
	c := make(model, len(m))
	for k, v := range m {
		c[k] = v
	}
	return c
}

func (m model) apply(batch []Entry) {
	for _, e := range batch {
		if e.Value == nil {
			delete(m, string(e.Key))
		} else {
			m[string(e.Key)] = string(e.Value)
		}
	}
}

func (m model) keys() []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// between returns the keys with from <= key < to.
func (m model) between(from, to []byte) (keys []string) {
	for _, k := range m.keys() {
		if bytes.Compare([]byte(k), from) >= 0 && (to == nil || bytes.Compare([]byte(k), to) < 0) {
			keys = append(keys, k)
		}
	}
	return keys
}

type getter interface {
	Get(key []byte) ([]byte, bool, error)
}

// checkGet compares one read with the model.
func (m model) checkGet(g getter, key string) error {
	v, ok, err := g.Get([]byte(key))
	if err != nil {
		return err
	}
	want, has := m[key]
	if ok != has || string(v) != want || ok && v == nil {
		return fmt.Errorf("%w: get %q: %q, %v, want %q, %v", errWrong, key, v, ok, want, has)
	}
	return nil
}

// errWrong marks answers that are neither right nor errors.
var errWrong = errors.New("wrong answer")

// checkScan compares a scan with the model. It stops at the first wrong entry, or
// returns the index's error.
func (m model) checkScan(s *Snapshot, from, to []byte) error {
	want := m.between(from, to)
	n := 0
	for e, err := range s.Scan(from, to) {
		if err != nil {
			return err
		}
		if n >= len(want) || string(e.Key) != want[n] || string(e.Value) != m[want[n]] || e.Value == nil {
			return fmt.Errorf("%w: scan %q–%q: entry %d is %q=%q", errWrong, from, to, n, e.Key, e.Value)
		}
		n++
	}
	if n != len(want) {
		return fmt.Errorf("%w: scan %q–%q: %d entries, want %d", errWrong, from, to, n, len(want))
	}
	return nil
}

func (m model) checkLast(s *Snapshot, from, to []byte) error {
	want := ""
	has := false
	for k := range m {
		if bytes.Compare([]byte(k), from) >= 0 && (to == nil || bytes.Compare([]byte(k), to) < 0) && (!has || k > want) {
			want, has = k, true
		}
	}
	e, ok, err := s.Last(from, to)
	if err != nil {
		return err
	}
	if ok != has || string(e.Key) != want || string(e.Value) != m[want] {
		return fmt.Errorf("%w: last %q–%q: %q=%q, %v, want %q", errWrong, from, to, e.Key, e.Value, ok, want)
	}
	return nil
}

// checkAll compares all entries, read in every way.
func (m model) checkAll(s *Snapshot) error {
	if err := m.checkScan(s, nil, nil); err != nil {
		return err
	}
	for k := range m {
		for _, key := range []string{k, k + "\x00"} {
			if err := m.checkGet(s, key); err != nil {
				return err
			}
		}
	}
	return m.checkLast(s, nil, nil)
}

// requireModel requires the latest state to equal the model.
func requireModel(t testing.TB, m model, db *DB) {
	t.Helper()
	s := db.Snapshot()
	defer s.Close()
	require.NoError(t, m.checkAll(s))
}

// batchOf returns a batch that sets the keys key(from) … key(to-1).
func batchOf(from, to int, value func(i int) string) []Entry {
	var batch []Entry
	for i := from; i < to; i++ {
		batch = append(batch, Entry{Key: []byte(key(i)), Value: []byte(value(i))})
	}
	return batch
}

// key spreads small numbers over the key space, with shared prefixes.
func key(i int) string { return fmt.Sprintf("%c/%08d/%04d", 'a'+i%5, i*7919%100003, i) }

func same(v string) func(int) string { return func(int) string { return v } }
