package embedded

import (
	"context"
	"errors"
	"fmt"

	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/lineage/backend"
)

var _ backend.Packer = (*Engine)(nil)

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
	files, err := e.packFiles(o.All)
	if err != nil {
		return report, fmt.Errorf("pack: %w", err)
	}
	plan := planSegments(files)
	if o.All {
		plan = planAll(files, o.Dense)
	}
	if err := e.packJobs(ctx, plan, o, !o.All, &report); err != nil {
		return report, fmt.Errorf("pack: %w", err)
	}
	if err := e.dropPacked(ctx); err != nil && ctx.Err() == nil {
		e.opt.Logger.Warn("index keeps entries that packs replace", "err", err)
	}
	if !o.All {
		if err := e.mergePacks(ctx, &report); err != nil {
			return report, fmt.Errorf("pack: %w", err)
		}
	}
	if o.All && !e.indexIsSpare() || !o.All && e.index.IsLoose() {
		if err := e.compactIndex(ctx); err != nil {
			e.opt.Logger.Warn("index is not compacted", "err", err)
		}
	}
	if err := ctx.Err(); err != nil {
		return report, fmt.Errorf("pack: %w", context.Cause(ctx))
	}
	report.After = e.journal.Size()
	if e.indexIsSpare() {
		report.After -= e.journal.Spare() // as of Close
	} else {
		report.After += e.index.Size()
	}
	for _, f := range e.journal.Segments() {
		if f.Packed && !f.Dense {
			report.Fast += f.Bytes
		}
	}
	return report, nil
}

// packJobs writes the packs of a plan. Quick ones, for segments that are still young, take less time.
func (e *Engine) packJobs(ctx context.Context, plan []packJob, o backend.PackOptions, quick bool, report *backend.PackReport) error {
	var done, total int64
	for _, p := range plan {
		total += p.bytes
	}
	for _, p := range plan {
		r, err := e.journal.Rewrite(ctx, p.first, p.last, journal.RewriteOptions{
			Yield: e.giveWay(),
			Dense: o.Dense, Quick: quick, Unlisted: e.unlisted(p.first, o.Dense),
			Progress: func(n, of int64) {
				if o.Progress != nil {
					o.Progress(done+int64(float64(p.bytes)*float64(n)/float64(max(of, 1))), total)
				}
			},
		})
		e.frames.Clear()
		if p.damaged && errors.Is(err, backend.ErrCorrupt) {
			e.opt.Logger.Warn("damaged pack is left as it is", "err", err) // the others are packed
			continue
		}
		if err != nil {
			return err
		}
		done += p.bytes
		report.Files++
		report.Commits += r.Commits
	}
	return nil
}

// mergePacks merges packs in the background, smaller ones first. Packs that cannot be merged, because
// they cannot be read or the disk is full, are left as they are until the store is opened again.
func (e *Engine) mergePacks(ctx context.Context, report *backend.PackReport) error {
	for {
		files, err := e.packFiles(false)
		if err != nil {
			return err
		}
		job, ok := planMerge(files)
		if !ok {
			return nil
		}
		err = e.packJobs(ctx, []packJob{job}, backend.PackOptions{}, false, report)
		if err == nil {
			continue
		}
		if ctx.Err() != nil || errors.Is(err, backend.ErrClosed) {
			return err
		}
		var damage *backend.CorruptError
		located := errors.As(err, &damage)
		e.opt.Logger.Warn("packs are not merged", "err", err)
		var names []string
		for _, f := range files {
			if f.Last < job.first || f.First > job.last {
				continue
			}
			if names = append(names, f.Name); located && f.Name == damage.File {
				names = []string{f.Name}
				break
			}
		}
		for _, name := range names {
			e.unmergeable[name] = true
		}
	}
}

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
	if err := index.Remove(e.indexPath()); err != nil {
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
