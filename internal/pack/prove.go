package pack

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/pack/layout"
)

// proofCache is the size of the cache in Prove, which reads each chapter once.
const proofCache = 8 << 20

// Prove reads back everything that was written and compares it with the input.
func (w *Writer) Prove(ctx context.Context, file io.ReaderAt, name string) error {
	w.Close()
	p, err := Open(file, w.at, name, NewCache(proofCache))
	if err != nil {
		return err
	}
	p.alone.Stop = func() error { return context.Cause(ctx) }
	p.proven = make([]content.ID, w.row.Body)
	i := 0
	for f, err := range p.Frames(0, 0) {
		if ctx.Err() != nil {
			return context.Cause(ctx) // an interrupted decompression looks like damage
		}
		if err != nil {
			return err
		}
		w.Yield()
		if i >= len(w.sums) || f.Number != w.h.FirstCommit+uint64(i) || layout.Sum(f.Payload) != w.sums[i] {
			return fmt.Errorf("pack %s: commit %d does not read back", name, f.Number)
		}
		i++
	}
	if !slices.Equal(p.identities, w.identities) {
		return fmt.Errorf("pack %s: the ids of its commits do not read back", name)
	}
	if i != len(w.sums) {
		return fmt.Errorf("pack %s: %d commits of %d read back", name, i, len(w.sums))
	}
	if err := p.checkHeads(p.rows); err != nil {
		return err
	}
	if w.Unlisted {
		return nil
	}
	return p.CheckSums()
}
