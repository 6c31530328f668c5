//test:race

package memtable

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/campaign"
)

// model is the expected contents of a table; a nil value is a deletion.
type model map[string][]byte

// between returns the keys with from <= key < to; a nil to has no end.
func (m model) between(from, to []byte) []string {
	var keys []string
	for k := range m {
		if k >= string(from) && (to == nil || k < string(to)) {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

func drawKey(t *rapid.T) []byte {
	prefix := rapid.SampledFrom([]string{"", "a", "b", "bbbbbbbb", "bbbbbbbb\x00", "q"}).Draw(t, "prefix")
	tail := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 'b', 0xff}), 0, 4).Draw(t, "tail")
	return append([]byte(prefix), tail...)
}

func drawValue(t *rapid.T) []byte {
	n := rapid.SampledFrom([]int{-1, 0, 1, 40}).Draw(t, "size")
	if n < 0 {
		return nil
	}
	return bytes.Repeat([]byte{rapid.Byte().Draw(t, "byte")}, n)
}

func (m model) check(t *rapid.T, moment Moment) {
	key := drawKey(t)
	value, ok := moment.Get(key)
	want, has := m[string(key)]
	require.Equal(t, has, ok)
	require.Equal(t, want, value)

	var listed, got []string
	for _, k := range m.between(nil, nil) {
		listed = append(listed, fmt.Sprintf("%q=%q", k, m[k]))
	}
	c := moment.Seek(nil)
	for ; c.Valid(); c.Next() {
		got = append(got, fmt.Sprintf("%q=%q", c.Key(), c.Value()))
	}
	require.Equal(t, listed, got)

	c.Seek(key)
	from := m.between(key, nil)
	require.Equal(t, len(from) > 0, c.Valid())
	if len(from) > 0 {
		require.Equal(t, from[0], string(c.Key()))
	}
	for _, to := range [][]byte{key, nil} {
		before := m.between(nil, to)
		k, v, ok := moment.Last(to)
		require.Equal(t, len(before) > 0, ok)
		if ok {
			last := before[len(before)-1]
			require.Equal(t, last, string(k))
			require.Equal(t, m[last], v)
		}
	}
}

//test:norace
func TestModelOfATable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type sealed struct {
			is Moment
			as model
		}
		table, now := New(), model{}
		var moments []sealed
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				for range rapid.IntRange(1, 20).Draw(t, "entries") {
					k, v := drawKey(t), drawValue(t)
					table.Set(k, v)
					now[string(k)] = v
				}
			},
			"set one after the other": func(t *rapid.T) {
				k := append(drawKey(t), 0)
				for i := range rapid.IntRange(1, 20).Draw(t, "entries") {
					k[len(k)-1] = byte(i)
					table.Set(k, k)
					now[string(k)] = bytes.Clone(k)
				}
			},
			"seal": func(*rapid.T) {
				moments = append(moments, sealed{table.Seal(), maps.Clone(now)})
			},
			"": func(t *rapid.T) {
				now.check(t, table.Latest())
				if len(moments) > 0 {
					m := rapid.SampledFrom(moments).Draw(t, "moment")
					m.as.check(t, m.is)
				}
			},
		})
		for _, m := range moments {
			m.as.check(t, m.is)
		}
	})
}

// Sealed moments are read during writes.
func TestReadersAndWriter(t *testing.T) {
	const passes, keys = 60, 200
	type sealed struct {
		Moment
		pass uint64
	}
	moments := make(chan sealed, 1)
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for m := range moments {
				n := 0
				for c := m.Seek(nil); c.Valid(); c.Next() {
					if pass := binary.BigEndian.Uint64(c.Value()); pass != m.pass {
						t.Errorf("%s is of pass %d, read in that of %d", c.Key(), pass, m.pass)
					}
					n++
				}
				key, value, ok := m.Last(nil)
				if got, found := m.Get(key); n != keys || !ok || !found || !bytes.Equal(got, value) {
					t.Errorf("%d entries, the last %x is %x and %x", n, key, value, got)
				}
			}
		})
	}
	table := New()
	for pass := range uint64(passes) {
		for i := range keys {
			at := (i*79 + int(pass)) % keys
			table.Set(fmt.Appendf(nil, "%c%08d", 'a'+at%7, at), binary.BigEndian.AppendUint64(nil, pass))
		}
		moments <- sealed{table.Seal(), pass}
	}
	close(moments)
	readers.Wait()
}

// All nodes are reachable on every level after inserts in many orders.
//
//test:norace
func TestLevels(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		table := New()
		for i := range 3000 {
			at := i
			if random.IntN(3) == 0 {
				at = random.IntN(100_000)
			}
			table.Set(fmt.Appendf(nil, "%c%07d", 'a'+rune(random.IntN(40)), at), nil)
		}
		on := table.Len()
		for level := range maxHeight {
			var before []byte
			n := 0
			for id := table.next(0, level); id != 0; id = table.next(id, level) {
				key := table.bytes(table.node(id).key)
				require.Negative(t, bytes.Compare(before, key), "level %d", level)
				before = key
				n++
			}
			if level == 0 {
				require.Equal(t, on, n)
			}
			require.LessOrEqual(t, n, on)
			on = n
		}
	}
}

func TestSizes(t *testing.T) {
	require.Equal(t, nodeSize, int(unsafe.Sizeof(node{})))
	table := New()
	require.Zero(t, table.Len())
	require.Zero(t, table.Bytes())
	large := make([]byte, 3*maxChunk)
	table.Set(nil, large)
	table.Set([]byte("k"), nil)
	require.Equal(t, 2, table.Len())
	require.GreaterOrEqual(t, table.Bytes(), int64(len(large)+2*nodeSize))
	value, ok := table.Latest().Get([]byte{})
	require.True(t, ok)
	require.Equal(t, large, value)
	value, ok = table.Latest().Get([]byte("k"))
	require.True(t, ok)
	require.Nil(t, value)
}

// Setting and reading allocate nothing but the memory of entries.
func TestAllocations(t *testing.T) {
	table := New()
	key, value := make([]byte, 17), make([]byte, 40)
	i := uint64(0)
	require.Less(t, campaign.Allocs(20_000, func() {
		i++
		binary.BigEndian.PutUint64(key, i*0x9e3779b97f4a7c15)
		table.Set(key, value)
	}), 0.1)
	require.Zero(t, campaign.Allocs(100, func() {
		m := table.Seal()
		if _, ok := m.Get(key); !ok {
			t.Error("not found")
		}
		c := m.Seek(key[:4])
		c.Next()
	}))
}

func BenchmarkSet(b *testing.B) {
	for _, order := range []string{"random", "rising in three tables"} {
		b.Run(order, func(b *testing.B) {
			key, value := make([]byte, 33), make([]byte, 20)
			table, i := New(), uint64(0)
			for b.Loop() {
				if i++; i%100_000 == 0 {
					table = New()
				}
				if order == "random" {
					binary.BigEndian.PutUint64(key[1:], i*0x9e3779b97f4a7c15)
				} else {
					key[0] = 'a' + byte(i%3)
					binary.BigEndian.PutUint64(key[17:], i/3)
				}
				table.Set(key, value)
			}
		})
	}
}

func BenchmarkGet(b *testing.B) {
	table := New()
	key := make([]byte, 17)
	at := func(i uint64) []byte {
		binary.BigEndian.PutUint64(key[1:], i%100_000*0x9e3779b97f4a7c15)
		return key
	}
	for i := range uint64(100_000) {
		table.Set(at(i), key)
	}
	m, i := table.Seal(), uint64(0)
	for b.Loop() {
		i += 7919
		if _, ok := m.Get(at(i)); !ok {
			b.Fatal("not found")
		}
	}
}
