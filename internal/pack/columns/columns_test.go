package columns

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A reader gets the values of the writer, and detects missing and extra data.
func TestCoder(t *testing.T) {
	type item struct {
		column int
		v      uint64
		b      []byte
	}
	const symbol, number, raw, length, text, most = 0, 1, 2, 3, 4, 5
	rapid.Check(t, func(t *rapid.T) {
		items := rapid.SliceOf(rapid.Custom(func(t *rapid.T) item {
			x := item{column: rapid.SampledFrom([]int{symbol, number, raw, text}).Draw(t, "column")}
			switch x.column {
			case symbol:
				x.v = rapid.Uint64Range(0, 15).Draw(t, "v")
			case number:
				x.v = rapid.Uint64().Draw(t, "v")
			default:
				x.b = rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "b")
			}
			return x
		})).Draw(t, "items")
		run := func(c *coder) (got []item) {
			for _, x := range items {
				y := item{column: x.column}
				if c.writing {
					y = x
				}
				switch x.column {
				case symbol:
					y.v = uint64(c.symbol(symbol, int(y.v)))
				case number:
					y.v = c.number(number, y.v)
				case raw:
					y.b = append(make([]byte, 0, 20), y.b...)[:len(x.b)]
					c.raw(raw, y.b)
				case text:
					y.b = []byte(c.text(length, text, string(y.b)))
				}
				got = append(got, y)
			}
			return got
		}
		w := newWriter(most)
		run(w)
		written := w.finish()
		r := newReader(written, most)
		got := run(r)
		for i, x := range items {
			require.Equal(t, x.v, got[i].v)
			require.True(t, bytes.Equal(x.b, got[i].b))
		}
		require.True(t, r.complete())
		require.False(t, r.spent())
		if len(items) > 0 { // missing or extra bytes are detected
			n := rapid.IntRange(0, len(written)-1).Draw(t, "cut")
			cut := newReader(written[:n], most)
			run(cut)
			require.True(t, cut.spent())
			more := newReader(append(bytes.Clone(written), 0), most)
			require.True(t, more.spent())
			last := items[len(items)-1]
			items = items[:len(items)-1]
			if r := newReader(written, most); last.column != raw || len(last.b) > 0 {
				run(r)
				require.False(t, r.complete())
			}
		}
	})
}

func TestSymbolsAreSmall(t *testing.T) {
	c := newReader([]byte{1, 16}, 1)
	require.Zero(t, c.symbol(0, 0))
	require.True(t, c.spent())
}
