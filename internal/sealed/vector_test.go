package sealed

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/varint"
)

// drawNumbers draws numbers that are constant, even, few, or anything.
func drawNumbers(t *rapid.T, n int) []uint64 {
	few := rapid.SliceOfN(rapid.Uint64(), 1, 3).Draw(t, "few")
	slope := rapid.OneOf(rapid.Uint64Range(0, 100), rapid.Uint64()).Draw(t, "slope")
	noise := rapid.SampledFrom([]uint64{1, 2, 200, 1 << 33}).Draw(t, "noise")
	all := make([]uint64, n)
	for i, how := range rapid.SliceOfN(rapid.IntRange(0, 2+rapid.IntRange(0, 1).Draw(t, "any")), n, n).Draw(t, "how") {
		switch how {
		case 3:
			all[i] = rapid.Uint64().Draw(t, "number")
		case 2:
			all[i] = few[i%len(few)]
		default:
			all[i] = few[0] + uint64(i)*slope + rapid.Uint64Range(0, noise).Draw(t, "more")
		}
	}
	return all
}

// Columns of numbers and texts are read as they were written, whatever they contain.
func TestGroups(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(t, "rows")
		texts := rapid.SliceOfN(rapid.Bool(), 1, 14).Draw(t, "columns")
		var numbers [][]uint64
		for i := range texts {
			numbers = append(numbers, drawNumbers(t, n))
			if i > 0 && rapid.Bool().Draw(t, "follows") {
				from, times := numbers[rapid.IntRange(0, i-1).Draw(t, "from")], rapid.Uint64Range(0, 9).Draw(t, "times")
				for k, x := range from {
					numbers[i][k] = x*times/4 + rapid.Uint64Range(0, 2).Draw(t, "differs")
				}
			}
		}
		text := func(column, row int) []byte { return bytes.Repeat([]byte{'a'}, int(numbers[column][row]%5)) }
		var w groupWriter
		for row := range n {
			var cells []cell
			for i, one := range texts {
				c := cell{number: numbers[i][row]}
				if one {
					c = cell{text: text(i, row), isText: true}
				}
				cells = append(cells, c)
			}
			w.add(cells)
		}
		b, heap := w.append(nil, []byte("before"), texts)
		var g groupReader
		r := varint.Reader{Rest: append(b, "after"...)}
		require.NoError(t, g.read(&r, n, texts))
		require.Equal(t, "after", string(r.Rest))
		for row := range n {
			for i, one := range texts {
				got := g.number(i, row)
				if !one {
					require.Equal(t, numbers[i][row], got)
					continue
				}
				b, err := g.text(i, got, heap)
				require.NoError(t, err)
				require.Equal(t, text(i, row), append([]byte{}, b...))
			}
		}
		for at := range b { // what is damaged is refused or read, and nothing else
			b[at] ^= byte(rapid.IntRange(1, 255).Draw(t, "damage"))
			var g groupReader
			if g.read(&varint.Reader{Rest: b}, n, texts) == nil {
				for i := range texts {
					_, _ = g.text(i, g.number(i, n-1), heap)
				}
			}
		}
	})
}

// What increases with another column takes few bits, and so does what follows from that, up to maxDepth.
func TestColumnsThatFollow(t *testing.T) {
	const rows = 500
	size := func(columns int) int {
		var w groupWriter
		for i := range uint64(rows) {
			x := i * 7919 % 20_000
			cells := []cell{{number: x}, {number: 1<<63 + 3*x}, {number: 1_700_000_000_000 + x*17/4}, {number: 99 + 3*(1_700_000_000_000+x*17/4)}, {number: 5 * (1<<63 + 3*x)}}
			w.add(cells[:columns])
		}
		b, _ := w.append(nil, nil, make([]bool, columns))
		var g groupReader
		require.NoError(t, g.read(&varint.Reader{Rest: b}, rows, make([]bool, columns)))
		for i := range columns {
			require.LessOrEqual(t, g.columns[i].depth, maxDepth)
			for row := range rows {
				require.Equal(t, w.numbers[i][row], g.number(i, row))
			}
		}
		return len(b)
	}
	one := size(1)
	require.Less(t, size(5)-one, rows*(3+2*8)/8)
}

// A vector follows from at most maxDepth others.
func TestDepthOfColumns(t *testing.T) {
	b := []byte{8 << 2, 0} // a number of 8 bits in each row
	for range maxDepth {
		b = append(b, withEarlier, 1<<1, 0)
	}
	deeper := append(slices.Clone(b), withEarlier, 1<<1, 0)
	texts := make([]bool, maxDepth+2)
	var g groupReader
	require.NoError(t, g.read(&varint.Reader{Rest: append(b, 42)}, 1, texts[1:]))
	require.EqualValues(t, 42, g.number(maxDepth, 0))
	require.ErrorIs(t, g.read(&varint.Reader{Rest: append(deeper, 42)}, 1, texts), ErrDamaged)
}

// Ids are read as they were written, and any id is found at its place in their order.
func TestIDs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one := rapid.OneOf(rapid.Custom(func(t *rapid.T) []byte { return drawID(t) }), rapid.SliceOfN(rapid.Byte(), idSize, idSize))
		ids := rapid.SliceOfN(one, 1, 40).Draw(t, "ids")
		slices.SortFunc(ids, bytes.Compare)
		ids = slices.CompactFunc(ids, bytes.Equal)
		b := encodeIDs(nil, slices.Concat(ids...))
		d, err := readIDs(b, ids[0], len(ids))
		require.NoError(t, err)
		for i, id := range ids {
			got := d.at(i)
			require.Equal(t, id, got[:])
		}
		for _, id := range append(rapid.SliceOfN(one, 1, 10).Draw(t, "others"), ids...) {
			n, ok := slices.BinarySearchFunc(ids, id, bytes.Compare)
			got, found := d.search((*[idSize]byte)(id))
			require.Equal(t, ok, found)
			require.Equal(t, n, got)
		}
		_, err = readIDs(b[:len(b)-1], ids[0], len(ids))
		require.ErrorIs(t, err, ErrDamaged)
	})
}

// Numbers of few bits are found wherever they lie.
func TestBits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(1, 64).Draw(t, "width")
		var w bitWriter
		numbers := rapid.SliceOfN(rapid.Uint64Range(0, 1<<width-1), 1, 40).Draw(t, "numbers")
		for _, x := range numbers {
			w.put(x, width)
		}
		b := w.finish()
		require.Len(t, b, bytesOf(len(numbers), width))
		for i, x := range numbers {
			require.Equal(t, x, readBits(b, i*width, width))
		}
	})
}

// Ids of one process in order take few bits each.
func TestIDsOfOneProcess(t *testing.T) {
	var ids []byte
	for i := range 128 {
		id := wide{0x018bcfe568007000 + uint64(i)<<18, 0x8f99e7ca4c11f000 + uint64(i)*3}.id()
		ids = append(ids, id[:]...)
	}
	require.Less(t, len(encodeIDs(nil, ids)), 128*3)
}
