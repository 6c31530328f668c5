package follow

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage"
)

// read reads the new part of a file. It returns only errors of the store or the context.
func (r *run) read(ctx context.Context, f *file) error {
	f.queued, r.waitingSent = false, false
	delete(r.waiting, f)
	size := f.now.size
	r.options.Events(Event{Kind: Reading, Agent: f.agent(), Path: f.path, Done: r.done, Total: r.total})
	err := r.readFile(ctx, f)
	r.done += size
	switch {
	case context.Cause(ctx) != nil:
		return context.Cause(ctx)
	case err == nil:
		if f.reader == nil || !f.reader.record.pending() {
			f.failures = 0
		}
		return nil
	case errors.Is(err, fs.ErrNotExist) && !exists(f.path):
		r.gone(f)
		return nil
	}
	if err := r.setAside(ctx, f, err); err != nil {
		return err
	}
	if !r.saveAt.IsZero() && !r.clock.Now().Before(r.saveAt) { // shows whether it was the store
		return r.save(ctx)
	}
	return nil
}

// readFile reads the new part of a file.
func (r *run) readFile(ctx context.Context, f *file) error {
	if f.now.mode&fs.ModeSymlink != 0 {
		return errLink
	}
	if !f.now.mode.IsRegular() {
		return errNotRegular
	}
	if out, err := r.stillLeftOut(ctx, f); out || err != nil {
		return err
	}
	if f.folder.index {
		r.readIndex(ctx, f)
		return nil
	}
	if f.compressedLines() {
		if read, err := r.readCompressed(ctx, f); read || err != nil {
			return err
		}
	}
	if !f.byLines() {
		return r.importFile(ctx, f)
	}
	opened, err := vfs.OpenFile(f.path, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer opened.Close()
	info, err := opened.Stat()
	if err != nil {
		return err
	}
	now := stampOf(info)
	end, err := r.end(f, opened, now)
	if err != nil || end == 0 {
		return err
	}
	return r.readFrom(ctx, f, opened, now, end)
}

// stillLeftOut reports, without reading the file, whether a file that was left out must still be.
func (r *run) stillLeftOut(ctx context.Context, f *file) (bool, error) {
	switch s := f.state; s.LeftOut {
	case OtherProject:
		if !r.options.leavesOut(s.Project) {
			return false, nil
		}
	case Deleted:
		for _, id := range s.Conversations {
			_, err := ThreadOf(ctx, r.store, id)
			if !errors.Is(err, lineage.ErrNotFound) {
				return false, err
			}
		}
	default:
		return false, nil
	}
	f.state.Size, f.state.Bytes, f.state.Modified, f.state.Beside = f.now.size, f.now.size, f.now.modified, f.now.beside
	r.changed(f)
	return true, nil
}
