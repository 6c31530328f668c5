package pack

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestCoder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type item struct {
			v    uint64
			kind int
		}
		items := rapid.SliceOf(rapid.Custom(func(t *rapid.T) item {
			kind := rapid.IntRange(0, 3).Draw(t, "kind")
			limit := []uint64{1, 255, 1<<64 - 1, 1<<13 - 1}[kind]
			return item{rapid.Uint64Range(0, limit).Draw(t, "v"), kind}
		})).Draw(t, "items")
		run := func(c *coder) (got []uint64) {
			var n number
			n.init()
			p, tree := prob{probStart, probStart}, make([]prob, 256)
			for i := range tree {
				tree[i] = prob{probStart, probStart}
			}
			for _, it := range items {
				v := it.v
				if !c.writing {
					v = 0
				}
				switch it.kind {
				case 0:
					v = uint64(c.bit(&p, int(v)))
				case 1:
					v = uint64(c.tree(tree, 8, int(v)))
				case 2:
					v = c.number(&n, v)
				case 3:
					v = c.raw(v, 13)
				}
				got = append(got, v)
			}
			return got
		}
		w := newWriter()
		want := run(w)
		r := newReader(w.finish())
		require.Equal(t, want, run(r))
		require.False(t, r.spent())
	})
}
