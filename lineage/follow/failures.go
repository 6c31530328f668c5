package follow

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"syscall"
	"time"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive/importer"
)

// setAside lets a run continue without a file that cannot be read. It returns an error of the store or the context.
func (r *run) setAside(ctx context.Context, f *file, err error) error {
	if err != nil && (context.Cause(ctx) != nil || r.storeFailed(ctx, f, err)) {
		return cmp.Or(context.Cause(ctx), err)
	}
	if err != nil {
		r.fail(f, err)
	}
	return nil
}

// storeFailed reports whether a file cannot be read because the store takes no changes, and not because of what the file
// or its thread has. A store that takes another change, the state of the file, has not failed, unless a disk was full, which may
// have room by then.
func (r *run) storeFailed(ctx context.Context, f *file, err error) bool {
	for _, failure := range []error{lineage.ErrClosed, lineage.ErrReadOnly, lineage.ErrLocked, syscall.ENOSPC, syscall.EDQUOT} {
		if errors.Is(err, failure) {
			return true
		}
	}
	failed := (*importer.StoreError)(nil)
	return errors.As(err, &failed) && r.kept.put(ctx, []*State{f.state}) != nil
}

// isReadLater reports whether a later run can read what the store could not read now. It cannot read what is erased, damaged or
// deleted.
func isReadLater(err error) bool {
	failed := (*importer.StoreError)(nil)
	return errors.As(err, &failed) && !errors.Is(err, lineage.ErrErased) && !errors.Is(err, lineage.ErrCorrupt) && !errors.Is(err, lineage.ErrNotFound)
}

// besidePath returns an error as it is reported beside a path: without the path.
func besidePath(path string, err error) error {
	if e, ok := err.(*fs.PathError); ok && e.Path == path {
		return e.Err
	}
	return err
}

// fail records why a file cannot be read. It will be tried again.
func (r *run) fail(f *file, err error) {
	err = besidePath(f.path, err)
	if f.state == nil {
		f.state = &State{}
		f.state.setPath(f.path)
	}
	if f.state.Error != err.Error() {
		f.state.Error = err.Error()
		r.changed(f)
		r.options.Events(Event{Kind: Failed, Agent: f.agent(), Path: f.path, Err: err})
	}
	r.waiting[f] = r.clock.Now().Add(min(retryFirst<<min(f.failures, 20), retryLast))
	f.failures++
}

// A file that cannot be read is tried again after retryFirst, then after twice that time, and so on, up to retryLast.
const (
	retryFirst = 10 * time.Second
	retryLast  = time.Hour
)
