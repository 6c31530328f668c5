package bundle

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// counted counts the commits that an engine was given.
type counted struct {
	backend.Engine
	commits int
}

func (c *counted) Apply(ctx context.Context, commit *structure.Commit, o backend.Options) (backend.Receipt, error) {
	c.commits++
	return c.Engine.Apply(ctx, commit, o)
}

// Messages of two runs of a thread with the same source ids, which no store would write, take a few commits.
func TestSourcesTwice(t *testing.T) {
	for _, n := range []uint64{10, 200} {
		c := craft(t)
		th := &structure.Thread{ID: structure.NewID[structure.ThreadID](), Incarnation: 1, Keeps: true, CreatedAt: time.UnixMilli(1), UpdatedAt: time.UnixMilli(1)}
		says := structure.NewBlock(content.TypeText, content.BlockOrigin{}, time.UnixMilli(1), []byte("said"))
		for i := range 2 {
			p := runPiece{run: structure.Run{ID: structure.NewID[structure.RunID](), Home: th.Home()}, last: n}
			records := []structure.Record{}
			if i == 0 {
				records = append(records, says)
			}
			for seq := range n {
				usages := []structure.Usage{{Kind: structure.MessageUsage, Role: "user", Content: says.ID, SourceID: fmt.Sprint("m", seq), Lookup: 1, CreatedAt: time.UnixMilli(1)}}
				p.digest = structure.NextDigest(p.digest, usages)
				records = append(records, &structure.Span{Ref: structure.SpanRef{Run: p.run.ID, Seq: seq + 1}, Usages: usages})
			}
			c.piece(p).commit(entryHistory, records...)
		}
		c.commit(entryFacts, th).commit(entryNames, th)
		e, err := embedded.Open(bg, "", embedded.Options{InMemory: true, Durability: backend.Normal})
		require.NoError(t, err)
		engine := &counted{Engine: e}
		s := lineage.New(engine)
		defer s.Close()
		report, err := Import(bg, s, bytes.NewReader(c.end()), ImportOptions{})
		require.NoError(t, err)
		require.Less(t, engine.commits, 10)
		require.Equal(t, n, report.Sources)
		requireSound(t, s)
	}
}
