package index

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// byValue derives an entry d+value+name for each entry k+name.
func byValue(f *Folding) error {
	for e := range f.Changed([]byte("k")) {
		was, there, err := f.Before(e.Key)
		if err != nil {
			return err
		}
		if there {
			f.Put(slices.Concat([]byte("d"), was, e.Key[1:]), nil)
		}
		got, there, err := f.After(e.Key)
		if err != nil {
			return err
		}
		if there != (e.Value != nil) || !bytes.Equal(got, e.Value) {
			return fmt.Errorf("%q is %q and %q", e.Key, got, e.Value)
		}
		if there {
			f.Put(slices.Concat([]byte("d"), got, e.Key[1:]), []byte{})
		}
	}
	return nil
}

// requireDerived compares the derived entries of a snapshot with their sources, for those
// that did not change since the last fold.
func requireDerived(t *rapid.T, s *Snapshot, as model) {
	changed := make(map[string]bool)
	for e := range s.Changed([]byte("k")) {
		changed[string(e.Key[1:])] = true
	}
	var want, forward, backward []string
	for k, v := range as {
		if k[0] == 'k' && !changed[k[1:]] {
			want = append(want, "d"+v+k[1:])
		}
	}
	slices.Sort(want)
	add := func(list *[]string, k []byte) {
		if !changed[string(k[2:])] {
			*list = append(*list, string(k))
		}
	}
	for from := []byte("d"); ; {
		e, ok, err := s.FirstDerived(from, []byte("e"))
		require.NoError(t, err)
		if !ok {
			break
		}
		add(&forward, e.Key)
		from = append(e.Key, 0)
	}
	for to := []byte("e"); ; {
		e, ok, err := s.LastDerived([]byte("d"), to)
		require.NoError(t, err)
		if !ok {
			break
		}
		add(&backward, e.Key)
		to = e.Key
	}
	slices.Reverse(backward)
	require.Equal(t, want, forward)
	require.Equal(t, want, backward)
}

// In every snapshot, derived entries agree with the entries as of the last fold.
//
//test:norace
func TestDerive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "index")
		require.NoError(t, err)
		defer os.RemoveAll(dir)
		m := &machine{dir: dir, now: model{}, options: Options{
			OverlayBytes: rapid.SampledFrom([]int64{500, 5000, 1 << 20}).Draw(t, "overlay"), Derive: byValue,
			Early: func(k []byte) bool { return k[0] == 'x' },
		}}
		m.rewrite = rapid.SampledFrom([]uint64{0, never}).Draw(t, "rewrite")
		m.open(t)
		m.number = 1
		m.db.Apply(at(1), nil)
		defer func() {
			for _, p := range m.snapshots {
				p.Close()
			}
			require.NoError(t, m.db.Close())
		}()
		apply := func(t *rapid.T) {
			var batch []Entry
			for range rapid.IntRange(1, 20).Draw(t, "entries") {
				name := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}).Draw(t, "name")
				e := Entry{Key: []byte(rapid.SampledFrom([]string{"k", "x"}).Draw(t, "table") + name)}
				if rapid.IntRange(0, 3).Draw(t, "delete") > 0 {
					e.Value = []byte(rapid.SampledFrom([]string{"1", "2", "3"}).Draw(t, "value"))
				}
				batch = append(batch, e)
			}
			m.number++
			m.db.Apply(at(m.number), batch)
			m.now.apply(batch)
			require.NoError(t, m.db.Throttle())
		}
		t.Repeat(map[string]func(*rapid.T){
			"apply": apply, "apply more": apply, "snapshot": m.Snapshot, "release": m.Release,
			"fold": func(*rapid.T) { m.db.Fold() }, "checkpoint": m.Checkpoint,
			"reopen": func(t *rapid.T) {
				for _, p := range m.snapshots {
					p.Close()
				}
				m.snapshots = nil
				require.NoError(t, m.db.Close())
				m.open(t)
			},
			"": func(t *rapid.T) {
				s := m.db.Snapshot()
				defer s.Close()
				requireDerived(t, s, m.now)
				for _, p := range m.snapshots {
					requireDerived(t, p.Snapshot, p.as)
				}
			},
		})
	})
}
