package embedded

import (
	"context"
	"errors"
	"fmt"

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
	if err := e.packing.Acquire(ctx); err != nil {
		return backend.PackReport{}, fmt.Errorf("pack: %w", err)
	}
	defer e.packing.Release()
	return e.pack(ctx, o)
}

// packSealed packs sealed segments if there are enough and the engine is not being closed.
func (e *Engine) packSealed(ctx context.Context) error {
	if e.begin() != nil {
		return nil
	}
	defer e.end()
	if e.packing.Acquire(ctx) != nil {
		return nil
	}
	defer e.packing.Release()
	if !e.schedule.enough() {
		return nil
	}
	_, err := e.pack(ctx, backend.PackOptions{})
	return err
}

// pack packs segments, and merges packs.
func (e *Engine) pack(ctx context.Context, o backend.PackOptions) (report backend.PackReport, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("pack: %w", err)
		}
	}()
	if e.opt.ReadOnly {
		return report, backend.ErrReadOnly
	}
	report.Before = e.journal.Size() + e.index.Size()
	if o.All {
		if err := e.journal.Seal(); err != nil {
			return report, err
		}
	}
	files, err := e.packFiles(o.All)
	if err != nil {
		return report, err
	}
	plan := planSegments(files)
	if o.All {
		plan = planAll(files, o.Dense)
	}
	if err := e.packJobs(ctx, plan, o, !o.All, &report); err != nil {
		return report, err
	}
	if err := e.dropPacked(ctx); err != nil && ctx.Err() == nil {
		e.opt.Logger.Warn("index keeps entries that packs replace", "err", err)
	}
	if !o.All {
		if err := e.mergePacks(ctx, &report); err != nil {
			return report, err
		}
	}
	if o.All && !e.indexIsSpare() || !o.All && e.index.IsLoose() {
		if err := e.compactIndex(ctx); err != nil {
			e.opt.Logger.Warn("index is not compacted", "err", err)
		}
	}
	if ctx.Err() != nil {
		return report, context.Cause(ctx)
	}
	e.measurePacked(&report)
	return report, nil
}

// measurePacked adds the sizes after packing to a report.
func (e *Engine) measurePacked(report *backend.PackReport) {
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
}

// packJobs writes the packs of a plan. Quick ones, for segments that are still young, take less time.
func (e *Engine) packJobs(ctx context.Context, plan []packJob, o backend.PackOptions, quick bool, report *backend.PackReport) error {
	var done, total int64
	for _, p := range plan {
		total += p.bytes
	}
	for _, p := range plan {
		r, err := e.journal.Rewrite(ctx, p.first, p.last, journal.RewriteOptions{
			Yield: e.queue.giveWay(),
			Dense: o.Dense, Quick: quick, Unlisted: e.unlisted(p.first, o.Dense),
			Progress: func(n, size int64) {
				if o.Progress != nil {
					o.Progress(done+int64(float64(p.bytes)*float64(n)/float64(max(size, 1))), total)
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
	const check, quick = false, false
	for {
		files, err := e.packFiles(check)
		if err != nil {
			return err
		}
		job, ok := planMerge(files)
		if !ok {
			return nil
		}
		err = e.packJobs(ctx, []packJob{job}, backend.PackOptions{}, quick, report)
		if err == nil {
			continue
		}
		if ctx.Err() != nil || errors.Is(err, backend.ErrClosed) {
			return err
		}
		e.opt.Logger.Warn("packs are not merged", "err", err)
		for _, name := range unmergeable(files, job, err) {
			e.unmergeable[name] = true
		}
	}
}

// unmergeable returns the names of the files for which a job failed: the damaged one, or all if the error names none of them.
func unmergeable(files []packFile, job packJob, err error) (names []string) {
	var damage *backend.CorruptError
	located := errors.As(err, &damage)
	for _, f := range files {
		if f.Last < job.first || f.First > job.last {
			continue
		}
		if located && f.Name == damage.File {
			return []string{f.Name}
		}
		names = append(names, f.Name)
	}
	return names
}

// packFiles returns the sealed files. With check, damage is searched for.
func (e *Engine) packFiles(check bool) (files []packFile, err error) {
	v := e.journal.FileSet()
	defer v.Release()
	damaged := map[string]bool{}
	if check {
		for name, err := range v.PackDamage() {
			if !errors.Is(err, backend.ErrCorrupt) {
				return nil, err
			}
			damaged[name] = true
		}
	}
	for _, f := range e.journal.Segments() {
		if !f.Sealed {
			break
		}
		p := packFile{SegmentInfo: f, damaged: damaged[f.Name] || !check && e.unmergeable[f.Name]}
		bytes, objects := f.Bytes/segmentRatio, uint64(f.Bytes/objectBytes)
		if f.Packed {
			bytes = f.Bytes
			objects, err = v.Objects(f.First)
			if errors.Is(err, backend.ErrClosed) {
				return nil, err
			}
			p.damaged = p.damaged || err != nil
		}
		p.share = max(float64(bytes)/float64(e.fullPack()), float64(objects)/fullObjects)
		files = append(files, p)
	}
	return files, nil
}

// fullPack is the size of the largest pack.
func (e *Engine) fullPack() int64 {
	if e.opt.fullPack > 0 {
		return e.opt.fullPack
	}
	return fullBytes
}
