package pack

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/pack/layout"
	"github.com/lineage-store/lineage/structure"
	"github.com/stretchr/testify/require"
)

// ending is a context that ends at the n-th call of Err.
type ending struct {
	context.Context
	left, looked int
}

func (e *ending) Err() error {
	if e.looked++; e.looked > e.left {
		return context.Canceled
	}
	return nil
}

// wordy returns commits with one large text each.
func wordy(number, size int) []*structure.Commit {
	r := rand.New(rand.NewPCG(1, 2))
	when := time.UnixMilli(1_700_000_000_000).UTC()
	var commits []*structure.Commit
	for range number {
		var text []byte
		for len(text) < size {
			text = fmt.Appendf(text, "%x ", r.Uint32N(1<<12))
		}
		b := structure.NewBlock("text/plain", content.BlockOrigin{Kind: content.OriginUser}, when, text)
		commits = append(commits, &structure.Commit{Time: when, Records: []structure.Record{b}})
	}
	return commits
}

// Compressing and proving a dense pack can take seconds. Both can be stopped, and then do
// no more work.
func TestDensePacksCanBeStopped(t *testing.T) {
	errEnough := errors.New("enough")
	for name, most := range map[string]int{"one chapter": 1 << 22, "several": 1 << 15} {
		t.Run(name, func(t *testing.T) {
			was := denseLimits
			defer func() { denseLimits = was }()
			denseLimits.bodies = most
			frames := framesOf(t, 1<<30, wordy(6, 20_000))
			m := &memory{}
			pack := func(left int) (w *Writer, asked int, err error) {
				*m = memory{}
				w = NewWriter(m, layout.Header{First: 1, Last: 1, FirstCommit: 1, Dense: true}, nil)
				t.Cleanup(w.Close)
				w.Stop = func() error {
					if asked++; asked > left {
						return errEnough
					}
					return nil
				}
				for _, f := range frames {
					if err := w.Add(f); err != nil {
						return w, asked, err
					}
				}
				_, err = w.Finish()
				return w, asked, err
			}
			w, asked, err := pack(1 << 30)
			require.NoError(t, err)
			require.Greater(t, asked, 6*20_000/(8<<10))
			ctx := &ending{t.Context(), 1 << 30, 0}
			require.NoError(t, w.Prove(ctx, m, "test.pack"))
			require.Greater(t, ctx.looked, len(frames), "more often than once per commit")
			for _, left := range []int{0, 1, ctx.looked / 2, ctx.looked - 1} {
				require.ErrorIs(t, w.Prove(&ending{t.Context(), left, 0}, m, "test.pack"), context.Canceled)
			}
			for _, left := range []int{0, asked / 2, asked - 1} {
				_, again, err := pack(left)
				require.ErrorIs(t, err, errEnough)
				require.Equal(t, left+1, again)
			}
		})
	}
}
