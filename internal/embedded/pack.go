package embedded

import (
	"context"
	"errors"
	"fmt"

	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/lineage/backend"
)

var _ backend.Packer = (*Engine)(nil)

const (
	// maxPackSource limits the total size of segments that are merged into one pack.
	maxPackSource = 64 << 20
	// packedRatio is the assumed ratio between segments and their pack.
	packedRatio = 4
)

// Pack implements backend.Packer.
func (e *Engine) Pack(ctx context.Context, o backend.PackOptions) (backend.PackReport, error) {
	if err := e.begin(); err != nil {
		return backend.PackReport{}, err
	}
	defer e.end()
	e.packing.Lock()
	defer e.packing.Unlock()
	return e.pack(ctx, o)
}

func (e *Engine) pack(ctx context.Context, o backend.PackOptions) (backend.PackReport, error) {
	var report backend.PackReport
	if e.opt.ReadOnly {
		return report, fmt.Errorf("pack: %w", backend.ErrReadOnly)
	}
	report.Before = e.journal.Size() + e.index.Size()
	if o.All {
		if err := e.journal.Seal(); err != nil {
			return report, fmt.Errorf("pack: %w", err)
		}
	}
	files := e.journal.Segments()
	if o.All {
		if err := e.markDamaged(files); err != nil {
			return report, fmt.Errorf("pack: %w", err)
		}
	}
	plan := packPlan(files, o.All, o.Dense)
	var done, total int64
	for _, p := range plan {
		total += p.bytes
	}
	for _, p := range plan {
		r, err := e.journal.Rewrite(ctx, p.first, p.last, journal.RewriteOptions{
			Yield: e.giveWay(),
			Dense: o.Dense, Unlisted: e.unlisted(p.first, o.Dense),
			Progress: func(n, _ int64) {
				if o.Progress != nil {
					o.Progress(done+min(n, p.bytes), total)
				}
			},
		})
		e.frames.Clear()
		if p.damaged && errors.Is(err, backend.ErrCorrupt) {
			e.opt.Logger.Warn("damaged pack is left as it is", "err", err) // the others are packed
			continue
		}
		if err != nil {
			return report, fmt.Errorf("pack: %w", err)
		}
		done += p.bytes
		report.Files++
		report.Commits += r.Commits
	}
	if err := e.dropPacked(ctx); err != nil && ctx.Err() == nil {
		e.opt.Logger.Warn("index keeps entries that packs replace", "err", err)
	}
	if o.All && !e.indexIsSpare() {
		if err := e.index.Compact(ctx); err != nil {
			e.opt.Logger.Warn("index is not compacted", "err", err)
		}
	}
	if err := ctx.Err(); err != nil {
		return report, fmt.Errorf("pack: %w", context.Cause(ctx))
	}
	report.After = e.journal.Size()
	if !e.indexIsSpare() { // it is deleted when the store is closed
		report.After += e.index.Size()
	}
	return report, nil
}

// packJob is a range of files that become one pack.
type packJob struct {
	first, last uint32
	bytes       int64 // size as segments, estimated
	files       int
	packed      bool // it is one pack already, dense if it is to be
	damaged     bool // and is rewritten only for that reason
}

// markDamaged sets Damaged for packs that are damaged, even if they can be read.
func (e *Engine) markDamaged(files []journal.SegmentInfo) error {
	v := e.journal.View()
	defer v.Release()
	for damaged, err := range v.PackDamage() {
		if !errors.Is(err, backend.ErrCorrupt) {
			return err
		}
		for i := range files {
			files[i].Damaged = files[i].Damaged || files[i].Name == damaged
		}
	}
	return nil
}

// packPlan returns what to pack: sealed segments, merged up to a size; with all, also
// small or damaged packs; with dense, also packs that are not dense.
func packPlan(files []journal.SegmentInfo, all, dense bool) []packJob {
	var plan []packJob
	var at packJob
	flush := func() {
		at.damaged = at.damaged && at.files == 1
		if at.files > 1 || at.files == 1 && !at.packed || at.damaged {
			plan = append(plan, at)
		}
		at = packJob{}
	}
	for _, f := range files {
		bytes := f.Bytes
		if f.Packed {
			bytes *= packedRatio
		}
		done := f.Packed && (f.Dense || !dense)
		skip := !f.Sealed || done && !all
		if skip || at.files > 0 && at.bytes+bytes > maxPackSource {
			flush()
		}
		if skip {
			continue
		}
		if at.files == 0 {
			at.first = f.First
		}
		at.last, at.packed, at.damaged = f.Last, done, f.Damaged
		at.bytes += bytes
		at.files++
	}
	flush()
	return plan
}

// spareSpans limits the number of spans, contexts and threads of a store whose index
// is not kept. Rebuilding such an index takes little more time than decompressing its
// packs.
const spareSpans = 1 << 14

// indexIsSpare reports whether the index is deleted on Close: all of the store is in
// dense packs, and it is so small that the index is rebuilt at each opening.
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

// isSmall reports whether the store is small enough for its index to be deleted on
// Close.
func (e *Engine) isSmall() bool {
	c := keys.CountersOf(e.index.State().Counts)
	return c.Spans+c.Contexts+c.Threads <= spareSpans
}
