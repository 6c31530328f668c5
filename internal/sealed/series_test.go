package sealed

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The bytes of series are on disk: changing them needs a new version of the index.
func TestGoldenUses(t *testing.T) {
	h := copied(30, 20)
	h.commit, h.place = 7, 3
	h.use(4, 300, runOf(2), 1) // in no series
	w := write(t, testShape{}, h.entries)
	require.True(t, w.hasSeries())
	got := w.directory
	for _, b := range w.extents {
		got = append(got, b...)
	}
	path := filepath.Join("testdata", "uses.golden")
	if os.Getenv("LINEAGE_UPDATE_GOLDEN") == "1" {
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// requireUses compares the uses of all subjects, in pages as an index reads them, and all entries.
func requireUses(t *testing.T, w *written, all map[string][]byte) {
	keys := sorted(all)
	i := 0
	for from := []byte{}; from != nil; {
		entries, next, err := w.Page(from, nil, 512)
		require.NoError(t, err)
		require.True(t, next == nil || bytes.Compare(next, from) > 0)
		for _, e := range entries {
			require.Equal(t, keys[i], string(e.Key))
			require.Equal(t, string(all[keys[i]]), string(e.Value))
			i++
		}
		from = next
	}
	require.Len(t, keys, i)
	counts := map[string]int{}
	for _, k := range keys {
		if k[0] == 'u' {
			counts[k[:1+subjectSize]]++
		}
	}
	for subject, n := range counts {
		require.Equal(t, n, readUses(t, w, []byte(subject)))
	}
}

// Uses that follow each other take a fraction of what they would take alone.
func TestUsesInSeries(t *testing.T) {
	size := func(w *written) int {
		n := len(w.directory)
		for _, b := range w.extents {
			n += len(b)
		}
		return n
	}
	h := forked(20, 40)
	w := write(t, testShape{}, h.entries)
	requireUses(t, w, h.entries)
	require.Less(t, size(w), size(writeUses(t, testShape{}, h.entries, 1, mixedCost))/5)

	// So do those of conversations that repeat a few texts again and again.
	h = &history{entries: map[string][]byte{}, commit: 1}
	for c := range 50 {
		h.entries["r"+string(runOf(c))] = []byte{}
		for m := range 200 {
			subject := m
			if m%3 == 1 {
				subject = 1000 + m/3%2 // "yes", or "go on"
			}
			h.use(subject, uint64(m+1), runOf(c), 0)
		}
	}
	w = write(t, testShape{}, h.entries)
	requireUses(t, w, h.entries)
	require.Less(t, size(w), size(writeUses(t, testShape{}, h.entries, 1, mixedCost))/2)
}

// Where series would save little there are none.
func TestUsesWithoutSeries(t *testing.T) {
	h := &history{entries: map[string][]byte{}, commit: 1}
	for c := range 100 {
		h.entries["r"+string(runOf(c))] = []byte{}
		for m := range 100 {
			h.use((c*7919+m*m*31)%300, uint64(m+1), runOf(c), 0)
		}
	}
	w := write(t, testShape{}, h.entries)
	require.False(t, w.hasSeries())
	requireUses(t, w, h.entries)
}

// A lookup reads few pieces in vain, also where a sequence has subjects of many uses and of one.
func TestUsesOfRareSubjects(t *testing.T) {
	h := &history{entries: map[string][]byte{}, commit: 1}
	for c := range 3000 {
		h.entries["r"+string(runOf(c))] = []byte{}
		from, to := 0, 20
		switch {
		case c < 2:
			to = 60
		case c%3 == 0:
			from = c % 17
		}
		for m := from; m < to; m++ {
			h.use(m, uint64(m+1), runOf(c), 0)
		}
		h.place++
	}
	w := write(t, testShape{}, h.entries)
	require.True(t, w.hasSeries())
	requireUses(t, w, h.entries)
	loads := 0
	counting := &written{Reader: Reader{w.Table, func(p Location) ([]byte, error) { loads++; return w.load(p) }}}
	for m := 21; m < 60; m++ {
		loads = 0
		require.Equal(t, 2, readUses(t, counting, subjectOf(m)))
		require.LessOrEqual(t, loads, 12)
	}
}

// Subjects and groups of more uses than are collected at a time.
func TestMoreUsesThanCollected(t *testing.T) {
	h := copied(400, 12)
	for _, limit := range []int{100, 399, 400, 1000, 3000} {
		requireUses(t, writeUses(t, testShape{}, h.entries, limit, 0), h.entries)
	}
}

func TestReservedKeys(t *testing.T) {
	w := NewWriter(testShape{}, func(uint32, []byte) error { return nil }, nil)
	require.ErrorIs(t, w.Add(appendUseKey(nil, subjectOf(1), 0, 0), nil), errReserved)
	require.ErrorIs(t, w.Add(appendUseKey(nil, subjectOf(1), 0, 0)[:useSize-4], nil), errReserved)
	require.ErrorIs(t, w.Add([]byte{piecesByte}, nil), errReserved)
	require.NoError(t, w.Add(appendUseKey(nil, subjectOf(1), 0, 0)[:useSize-5], nil))
	require.NoError(t, w.Add(appendUseKey(nil, subjectOf(1), 1, 0), nil))
}

// A changed byte anywhere in a table with series is an error where it is read, and never a wrong answer.
func TestDamagedUses(t *testing.T) {
	all := forked(4, 20).entries
	w := write(t, testShape{}, all)
	require.True(t, w.hasSeries())
	failed := 0
	for n, e := range w.extents {
		for at := n; at < len(e); at += 101 {
			e[at] ^= 1 << (at % 8)
			w.open(t, testShape{})
			for from := []byte{}; from != nil; {
				var entries []Entry
				var err error
				if entries, from, err = w.Page(from, nil, 64); err != nil {
					require.ErrorIs(t, err, ErrDamaged)
					failed++
					break
				}
				for _, e := range entries {
					require.Equal(t, string(all[string(e.Key)]), string(e.Value))
				}
			}
			e[at] ^= 1 << (at % 8)
		}
	}
	require.Positive(t, failed)
}

// FuzzUses reads pieces and pointers of any values: reading ends, in order or with an error.
func FuzzUses(f *testing.F) {
	f.Add([]byte{0, 1, 0, 0, 0, 1, 5, 1, 2, 3, 9, 0, 0})
	f.Add(bytes.Repeat([]byte{0xff, 0x80, 1}, 30))
	f.Fuzz(func(t *testing.T, b []byte) {
		w := &written{}
		wr := NewWriter(testShape{}, func(_ uint32, b []byte) error { w.extents = append(w.extents, bytes.Clone(b)); return nil }, w.load)
		run := runOf(1)
		require.NoError(t, wr.Define(append([]byte("r"), run...)))
		require.NoError(t, wr.begin())
		number := func() (n uint64) {
			n, size := binary.Uvarint(b)
			b = b[max(0, size):]
			if size <= 0 {
				b = nil
			}
			return n
		}
		entries := map[string][]byte{}
		for len(b) > 0 {
			subject := subjectOf(int(number() % 3))
			switch number() % 3 {
			case 0:
				entries[string(appendUseKey(nil, subject, number(), uint32(number())))] = useValue(number(), run, number())
			case 1:
				p := pointer{number(), number(), number(), number(), number()}
				entries[string(appendUseKey(nil, subject, 0, uint32(number()%6)))] = p.appendValue(nil)
			default:
				key := appendPieceKey(nil, uint32(number()%3), number(), number(), uint16(number()))
				entries[string(key)] = useValue(number(), nil, number())
				if number()%4 > 0 {
					entries[string(key)] = append(entries[string(key)], run...)
				}
			}
		}
		for _, k := range sorted(entries) {
			require.NoError(t, wr.store([]byte(k), entries[k]))
		}
		if err := wr.flushBlock(); err != nil {
			t.Fatal(err)
		}
		require.NoError(t, wr.flush())
		w.directory = wr.table.encodeDirectory()
		w.open(t, testShape{})
		for _, limit := range []int{1, 3, 100} {
			last := []byte{}
			for from := []byte{}; from != nil; {
				page, next, err := w.Page(from, nil, limit)
				if err != nil {
					require.ErrorIs(t, err, ErrDamaged)
					break
				}
				for _, e := range page {
					require.Positive(t, bytes.Compare(e.Key, last))
					last = slices.Clone(e.Key)
				}
				require.True(t, next == nil || bytes.Compare(next, from) > 0)
				from = next
			}
		}
		_, _, _ = w.Last(nil, nil)
		for k := range entries {
			_, _ = w.Has([]byte(k))
			_, _, _ = w.Last([]byte(k), append([]byte(k), 0xff))
		}
	})
}

func TestConcurrentReadersOfUses(t *testing.T) {
	h := forked(5, 20)
	w := write(t, testShape{}, h.entries)
	require.True(t, w.hasSeries())
	counts := map[string]int{}
	for k := range h.entries {
		if k[0] == 'u' {
			counts[k[:1+subjectSize]]++
		}
	}
	subjects := sorted(h.entries)
	subjects = slices.DeleteFunc(subjects, func(k string) bool { return k[0] != 'u' })
	var readers sync.WaitGroup
	for n := range 4 {
		readers.Go(func() {
			for i := n; i < len(subjects); i += 13 {
				subject := subjects[i][:1+subjectSize]
				assert.Equal(t, counts[subject], readUses(t, w, []byte(subject)))
				ok, err := w.Has([]byte(subjects[i]))
				assert.NoError(t, err)
				assert.True(t, ok)
			}
		})
	}
	readers.Wait()
}
