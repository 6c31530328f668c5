package embedded

import (
	"context"

	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/index"
)

// spareSpans limits the number of spans, contexts and threads of a store whose index
// is not kept. Rebuilding such an index takes little more time than decompressing its
// packs.
const spareSpans = 1 << 14

// indexIsSpare reports whether the index is deleted on Close, because all of the store is in dense packs and it is
// small enough for its index to be rebuilt at each opening.
func (e *Engine) indexIsSpare() bool {
	if e.index == nil || e.journal == nil || e.opt.ReadOnly || e.opt.InMemory || e.journal.Damage() != nil {
		return false
	}
	if !e.isSmall() {
		return false
	}
	files := e.journal.Segments()
	for _, f := range files[:len(files)-1] {
		if !f.Dense {
			return false
		}
	}
	last := files[len(files)-1]
	return len(files) > 1 && last.LastCommit < last.Commit
}

// removeSpare deletes the index, which is closed, and after it the lookup tables of packs, which only an index relies on.
// An index that is there again after a power failure is not used: see openPacks.
func (e *Engine) removeSpare() error {
	if err := e.dir.held(); err != nil {
		return err
	}
	if err := index.Remove(e.dir.index()); err != nil {
		return err
	}
	return e.journal.Unlist(context.Background())
}

// isSmall reports whether the store is small enough for its index to be deleted on
// Close.
func (e *Engine) isSmall() bool {
	c := keys.CountersOf(e.index.State().Counts)
	return c.Spans+c.Contexts+c.Threads <= spareSpans
}
