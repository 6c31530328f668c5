package sealed

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testShape has ids of two kinds, in keys of several forms.
type testShape struct{}

func (testShape) Owners() []byte { return []byte("cr") }

func (testShape) Uses() (first byte, kind int) { return 'u', 1 }

func (testShape) Parts(first byte) []KeyPart {
	switch first {
	case 'c':
		return []KeyPart{{Kind: 0}}
	case 'r', 's':
		return []KeyPart{{Kind: 1}}
	case 'x':
		return []KeyPart{{Kind: 0}, {Kind: 1}}
	case 'f':
		return []KeyPart{{Kind: 1}, {Size: 2}, {Kind: 1}}
	case 'S':
		return []KeyPart{{Size: 5, Text: true}, {Kind: 0}}
	case 'h':
		return []KeyPart{{Size: 11}}
	case 'u':
		return []KeyPart{{Size: 16}, {Size: 8}, {Size: 4}}
	case 'T':
		return []KeyPart{{Kind: 0, Tail: true}}
	}
	return nil
}

// Fields are what the first byte of a value says, whether they are there or not.
func (testShape) Fields(dst []Field, _, value []byte) []Field {
	if len(value) == 0 {
		return dst
	}
	all := [...]Field{
		{Form: Number}, {Form: Time}, {Form: ID, Kind: 0}, {Form: ID, Kind: 1}, {Form: Ref, Kind: 1},
		{Form: Bytes, Size: 1}, {Form: Bytes, Size: 11}, {Form: Text}, {Form: Optional}, {Form: Rest},
	}
	dst = append(dst, Field{Form: Bytes, Size: 1})
	for i := range all {
		dst = append(dst, all[(i*int(value[0]>>4|1)+int(value[0]))%len(all)])
	}
	return dst
}

// written is a table and its bytes.
type written struct {
	Reader
	directory []byte
	extents   [][]byte
}

func write(t require.TestingT, shape Shape, all map[string][]byte) *written {
	return writeUses(t, shape, all, maxUses, mixedCost)
}

// writeUses finds series among so many uses at a time, at another cost.
func writeUses(t require.TestingT, shape Shape, all map[string][]byte, limit, mixed int) *written {
	w := &written{}
	var lent [][]byte // to the writer, until it emits
	wr := NewWriter(shape, func(n uint32, b []byte) error {
		for _, b := range lent {
			clear(b)
		}
		lent = lent[:0]
		require.Len(t, w.extents, int(n))
		w.extents = append(w.extents, bytes.Clone(b))
		return nil
	}, func(p Location) ([]byte, error) {
		b, err := w.load(p)
		b = bytes.Clone(b)
		lent = append(lent, b)
		return b, err
	})
	wr.uses.limit, wr.uses.mixed = limit, mixed
	keys := sorted(all)
	for _, k := range keys {
		require.NoError(t, wr.Define([]byte(k)))
	}
	for _, k := range keys {
		require.NoError(t, wr.Add([]byte(k), all[k]))
	}
	var err error
	w.directory, err = wr.Finish()
	require.NoError(t, err)
	w.open(t, shape)
	return w
}

func (w *written) open(t require.TestingT, shape Shape) {
	table, err := Open(shape, w.directory, Sum(w.directory))
	require.NoError(t, err)
	w.Reader = Reader{table, w.load}
}

func (w *written) load(p Location) ([]byte, error) {
	if int(p.Extent) >= len(w.extents) || p.Offset+p.Length > len(w.extents[p.Extent]) {
		return nil, ErrDamaged
	}
	return w.extents[p.Extent][p.Offset:][:p.Length], nil
}

func sorted(all map[string][]byte) []string {
	keys := make([]string, 0, len(all))
	for k := range all {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// between returns the keys with from <= key < to.
func between(keys []string, from, to []byte) (in []string) {
	for _, k := range keys {
		if k >= string(from) && (to == nil || k < string(to)) {
			in = append(in, k)
		}
	}
	return in
}

// drawID draws ids with many common bytes, at both ends.
func drawID(t *rapid.T) []byte {
	id := bytes.Repeat(rapid.SampledFrom([][]byte{{0}, {1}, {0xff}}).Draw(t, "fill"), idSize)
	for range rapid.IntRange(0, 2).Draw(t, "changes") {
		id[rapid.SampledFrom([]int{0, 1, 11, 12, 15}).Draw(t, "at")] = rapid.SampledFrom([]byte{0, 1, 2, 0xff}).Draw(t, "byte")
	}
	return id
}

func drawKey(t *rapid.T, ids [][]byte) []byte {
	id := func() []byte {
		if len(ids) > 0 && rapid.IntRange(0, 4).Draw(t, "known") > 0 {
			return rapid.SampledFrom(ids).Draw(t, "id")
		}
		return drawID(t)
	}
	k := []byte{rapid.SampledFrom([]byte("crsxfSThzz")).Draw(t, "table")}
	for _, p := range (testShape{}).Parts(k[0]) {
		switch {
		case p.Size > 0:
			k = append(k, bytes.Repeat(rapid.SampledFrom([][]byte{{0}, {1}, {0xff}}).Draw(t, "raw"), p.Size)...)
		case p.Tail:
			of := id()
			k = append(append(k, of[idSize-tailSize:]...), of[:idSize-tailSize]...)
		default:
			k = append(k, id()...)
		}
	}
	k = append(k, rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 0xff}), 0, 3).Draw(t, "rest")...)
	if rapid.IntRange(0, 5).Draw(t, "cut") == 0 {
		k = k[:rapid.IntRange(1, len(k)).Draw(t, "length")]
	}
	return k
}

func drawTable(t *rapid.T) (all map[string][]byte, ids [][]byte) {
	all = map[string][]byte{}
	for range rapid.IntRange(0, 30).Draw(t, "ids") {
		ids = append(ids, drawID(t))
	}
	for _, id := range ids {
		all[string(append([]byte{rapid.SampledFrom([]byte("cr")).Draw(t, "owner")}, id...))] = []byte{}
	}
	for range rapid.IntRange(0, 60).Draw(t, "entries") {
		value := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 2, 0x7f, 0x80, 0xff}), 0, 10).Draw(t, "value")
		if len(ids) > 0 && rapid.Bool().Draw(t, "with id") {
			value = append(value, rapid.SampledFrom(ids).Draw(t, "id in value")...)
			value = append(value, rapid.SliceOfN(rapid.Byte(), 0, 10).Draw(t, "more")...)
		}
		if rapid.IntRange(0, 9).Draw(t, "large") == 0 {
			value = append(value, make([]byte, rapid.SampledFrom([]int{3000, 20000}).Draw(t, "size"))...)
		}
		all[string(drawKey(t, ids))] = value
	}
	return all, ids
}

// A table answers as a map does, for keys and bounds of any form.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all, ids := drawTable(t)
		w, keys := write(t, testShape{}, all), sorted(all)
		requireEntries(t, w, all, keys, nil, nil)
		for _, k := range keys {
			v, ok, err := w.Get([]byte(k))
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, all[k], v)
		}
		for range 10 {
			from, to := drawKey(t, ids), drawKey(t, ids)
			v, ok, err := w.Get(from)
			require.NoError(t, err)
			want, has := all[string(from)]
			require.Equal(t, has, ok)
			require.Equal(t, string(want), string(v))
			requireEntries(t, w, all, keys, from, to)
			requireEntries(t, w, all, keys, from, nil)
			requireLast(t, w, all, keys, from, to)
			requireLast(t, w, all, keys, nil, to)
			requireLast(t, w, all, keys, from, nil)
		}
	})
}

func requireEntries(t *rapid.T, w *written, all map[string][]byte, keys []string, from, to []byte) {
	want := between(keys, from, to)
	limit := rapid.SampledFrom([]int{1, 2, 1000}).Draw(t, "limit")
	for n := 0; ; {
		entries, next, err := w.Page(from, to, limit)
		require.NoError(t, err)
		for _, e := range entries {
			require.Less(t, n, len(want))
			require.Equal(t, want[n], string(e.Key))
			require.Equal(t, string(all[want[n]]), string(e.Value))
			n++
		}
		if from = next; next == nil {
			require.Len(t, want, n)
			return
		}
	}
}

func requireLast(t *rapid.T, w *written, all map[string][]byte, keys []string, from, to []byte) {
	want := between(keys, from, to)
	e, ok, err := w.Last(from, to)
	require.NoError(t, err)
	require.Equal(t, len(want) > 0, ok)
	if ok {
		require.Equal(t, want[len(want)-1], string(e.Key))
		require.Equal(t, string(all[string(e.Key)]), string(e.Value))
	}
}

// The bytes of a table are on disk: changing them needs a new version of the index.
func TestGolden(t *testing.T) {
	all := map[string][]byte{}
	for i := range 3 {
		c, r := bytes.Repeat([]byte{byte(i)}, idSize), append([]byte{15: byte(i)}, 0)[:idSize]
		all["c"+string(c)] = append([]byte("\x02\x02"), r...)
		all["r"+string(r)] = []byte{}
		all["x"+string(c)+string(r)] = []byte("name")
		all["T"+string(c[12:])+string(c[:12])] = []byte{}
		all[fmt.Sprintf("f%s\x00\x01none of the ids!", r)] = []byte("value")
		all[fmt.Sprintf("z%d", i)] = bytes.Repeat([]byte{'v'}, 200)
		sum := sha256.Sum256([]byte{byte(i)})
		all[fmt.Sprintf("z%d with ids", i)] = fmt.Appendf(nil, "\x01 %x-%x-%x-%x-%x %x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16], sum[:])
	}
	w := write(t, testShape{}, all)
	got := w.directory
	for _, b := range w.extents {
		got = append(got, b...)
	}
	path := filepath.Join("testdata", "table.golden")
	if os.Getenv("LINEAGE_UPDATE_GOLDEN") == "1" {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// many returns entries that fill several extents, with several blocks of ids.
func many() map[string][]byte {
	all := map[string][]byte{}
	id := func(kind byte, i int) string { return fmt.Sprintf("%c%08x%08x", kind, uint32(i)*2654435761, i) }
	for i := range 3000 {
		c, r := id('c', i), id('r', i)
		all[c], all[r] = []byte("\x03"+r[1:]), []byte{}
		all["x"+c[1:]+r[1:]] = []byte{}
		all["T"+c[13:]+c[1:13]] = []byte{}
		all[fmt.Sprintf("z%d", i)] = fmt.Appendf(nil, "%x", uint64(i)*0x9e3779b97f4a7c15>>3)
	}
	return all
}

func TestManyBlocks(t *testing.T) {
	all := many()
	w, keys := write(t, testShape{}, all), sorted(all)
	require.GreaterOrEqual(t, len(w.extents), 2)
	require.Greater(t, len(w.entries().blocks), 10)
	for i, k := range keys {
		v, ok, err := w.Get([]byte(k))
		require.NoError(t, err)
		require.True(t, ok, "%q", k)
		require.Equal(t, string(all[k]), string(v))
		_, ok, err = w.Get([]byte(k + "\x00"))
		require.NoError(t, err)
		require.False(t, ok)
		if i > 0 && i%50 == 0 {
			e, ok, err := w.Last(nil, []byte(k))
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, keys[i-1], string(e.Key))
		}
	}
}

// Of a tail, the dictionary has what distinguishes it. A key whose id is in no dictionary is there as well.
func TestTails(t *testing.T) {
	tail := func(id string) string { return "T" + id[idSize-tailSize:] + id[:idSize-tailSize] }
	all, few := map[string][]byte{}, map[string][]byte{}
	for i := range 2000 {
		sum := sha256.Sum256(fmt.Append(nil, i))
		copy(sum[idSize-tailSize:], []byte{0, byte(i % 3), byte(i >> 8), byte(i)}) // many share the first two bytes
		id := string(sum[:idSize])
		few["c"+id], all["c"+id], all[tail(id)] = nil, nil, nil
	}
	w := write(t, testShape{}, all)
	require.Less(t, w.stored-write(t, testShape{}, few).stored, int64(2000*2), "each takes its number, and little else")

	other := string(bytes.Repeat([]byte{1}, idSize))
	all[tail(other)], all[tail(other)+"more"], all[tail(other)[:9]] = []byte("another"), nil, nil
	w = write(t, testShape{}, all)
	keys := sorted(all)
	for _, k := range keys {
		_, ok, err := w.Get([]byte(k))
		require.NoError(t, err)
		require.True(t, ok, "%q", k)
		_, ok, err = w.Get([]byte(k[:4] + string([]byte{k[4] ^ 0x55}) + k[5:]))
		require.NoError(t, err)
		require.False(t, ok)
	}
	entries, _, err := w.Page([]byte("T\x00\x01"), []byte("T\x00\x02"), 1<<20)
	require.NoError(t, err)
	require.NotEmpty(t, entries)
	for _, e := range entries {
		require.Contains(t, all, string(e.Key))
		require.Equal(t, "T\x00\x01", string(e.Key[:3]))
	}
}

// The writer does not use lent bytes of a dictionary after it has emitted an extent: write clears them.
//
//test:norace
func TestFewIDsAndManyExtents(t *testing.T) {
	all := map[string][]byte{}
	for i := range 100 {
		all[fmt.Sprintf("c%016x", uint64(i)*0x9e3779b97f4a7c15)] = []byte{}
	}
	ids := sorted(all)
	for i := range 80_000 {
		h := fmt.Sprintf("%016x", uint64(i)*0xbf58476d1ce4e5b9)
		all["T"+ids[i%100][1:]+h] = []byte(h)
		all["S"+h[:5]+ids[i%100][1:]] = []byte(h)
	}
	w := write(t, testShape{}, all)
	require.Greater(t, len(w.extents), 2)
	for k, v := range all {
		got, ok, err := w.Get([]byte(k))
		require.NoError(t, err)
		require.True(t, ok, "%q", k)
		require.Equal(t, string(v), string(got))
	}
}

func TestConcurrentReaders(t *testing.T) {
	all := many()
	w, keys := write(t, testShape{}, all), sorted(all)
	var readers sync.WaitGroup
	for n := range 4 {
		readers.Go(func() {
			for i := n; i < len(keys); i += 61 {
				v, ok, err := w.Get([]byte(keys[i]))
				assert.NoError(t, err)
				assert.True(t, ok)
				assert.Equal(t, string(all[keys[i]]), string(v))
				_, _, err = w.Page([]byte(keys[i]), nil, 3)
				assert.NoError(t, err)
			}
		})
	}
	readers.Wait()
}

// Each id is stored once: what it takes elsewhere is a number.
func TestSize(t *testing.T) {
	all, size := many(), 0
	for k, v := range all {
		size += len(k) + len(v)
	}
	w := write(t, testShape{}, all)
	stored := len(w.directory)
	for _, b := range w.extents {
		stored += len(b)
	}
	require.Less(t, stored, size/3, "of %d bytes", size)
}

// A block has as many entries as fit in what it takes: a hash that repeats is stored once.
func TestRepeatedHashesFillABlock(t *testing.T) {
	var w blockWriter
	var value cutter
	for n := range maxCount {
		sum := sha256.Sum256([]byte{byte(n * 7 % 40)})
		value.layout, value.cells = value.layout[:0], value.cells[:0]
		value.bytes(sum[:])
		key := []byte{'k', byte(n >> 8), byte(n)}
		require.True(t, w.takes(key, []byte{2}, &value, 35), "entry %d", n)
		w.add(key, []byte{2}, &value)
	}
	require.Less(t, len(w.finish(nil)), blockSize)
}

func TestOrder(t *testing.T) {
	w := NewWriter(testShape{}, func(uint32, []byte) error { return nil }, nil)
	require.NoError(t, w.Add([]byte("b"), nil))
	require.ErrorIs(t, w.Add([]byte("b"), nil), errOrder)
	require.ErrorIs(t, w.Add([]byte("a"), nil), errOrder)
}

// A changed byte anywhere is an error where it is read, and never a wrong answer.
func TestDamagedBlocks(t *testing.T) {
	all := many()
	w, keys := write(t, testShape{}, all), sorted(all)
	for i := 0; i < len(w.directory); i += 97 {
		damaged := bytes.Clone(w.directory)
		damaged[i] ^= 0x10
		_, err := Open(testShape{}, damaged, Sum(w.directory))
		require.ErrorIs(t, err, ErrDamaged)
	}
	failed := 0
	for i := 0; i < 40; i++ {
		e := w.extents[i%len(w.extents)]
		at := i * 7919 % len(e)
		e[at] ^= 1
		w.open(t, testShape{})
		for n := i; n < len(keys); n += 40 {
			v, ok, err := w.Get([]byte(keys[n]))
			if err != nil {
				require.ErrorIs(t, err, ErrDamaged)
				failed++
				continue
			}
			require.True(t, ok)
			require.Equal(t, string(all[keys[n]]), string(v))
		}
		e[at] ^= 1
	}
	require.Positive(t, failed)
}

// A large value of equal bytes is stored, and read again.
func TestLargeValues(t *testing.T) {
	all := map[string][]byte{"z1": make([]byte, 3<<20), "z2": bytes.Repeat([]byte("0123456789"), 1<<18), "z3": {}}
	w := write(t, testShape{}, all)
	for k := range all {
		v, ok, err := w.Get([]byte(k))
		require.NoError(t, err)
		require.True(t, ok)
		require.True(t, bytes.Equal(all[k], v))
	}
}

func FuzzOpen(f *testing.F) {
	w := write(f, testShape{}, map[string][]byte{"c0123456789abcdef": []byte("x"), "z": []byte("0123456789abcdef")})
	f.Add(w.directory, w.extents[0], w.extents[1])
	f.Fuzz(func(t *testing.T, directory, first, second []byte) {
		table, err := Open(testShape{}, directory, Sum(directory))
		if err != nil {
			require.ErrorIs(t, err, ErrDamaged)
			return
		}
		// The checksums are those of the input.
		for i := range table.sections {
			for n := range table.sections[i].blocks {
				at := &table.sections[i].blocks[n]
				if b, err := (&written{extents: [][]byte{first, second}}).load(at.Location); err == nil {
					at.sum = Sum(b)
				}
			}
		}
		r := Reader{table, (&written{extents: [][]byte{first, second}}).load}
		for from := []byte{}; from != nil; {
			var err error
			if _, from, err = r.Page(from, nil, 100); err != nil {
				return
			}
		}
		_, _, _ = r.Last(nil, nil)
		_, _, _ = r.Get([]byte("xc0123456789abcdef"))
	})
}

func FuzzBlock(f *testing.F) {
	var w blockWriter
	in, value := &dictionaries{Reader: Reader{Table: newTable(testShape{})}}, cutter{}
	for n := range 40 {
		value.layout, value.cells = value.layout[:0], value.cells[:0]
		value.put(Number, 0, cell{number: uint64(n * n)})
		if n%3 > 0 {
			value.put(Text, 0, cell{text: fmt.Append(nil, n%5), isText: true})
		}
		w.add([]byte{'k', byte(n), 'x'}, []byte{1, restColumn}, &value)
	}
	f.Add(w.finish(nil), 40)
	w.add([]byte{'T', 1, 2, 3, 4, 5}, []byte{tailStart, tailColumn, 1}, &cutter{})
	f.Add(w.finish(nil), 1)
	f.Fuzz(func(t *testing.T, b []byte, count int) {
		d := blockReader{in: in}
		if count < 0 || count > maxCount {
			return
		}
		if err := d.read(b, count, 2); err != nil {
			require.ErrorIs(t, err, ErrDamaged)
			return
		}
		for i := range d.count {
			if _, err := d.appendKey(nil, i); err != nil {
				require.ErrorIs(t, err, ErrDamaged)
			}
			if _, err := d.appendValue(nil, in, i); err != nil {
				require.ErrorIs(t, err, ErrDamaged)
			}
			_, _, _ = d.search([]byte("k\x01x"))
		}
	})
}
