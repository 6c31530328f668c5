package follow

import (
	"context"
	"slices"
	"time"

	"github.com/lineage-store/lineage/lineage"
)

// The most recently used readers stay open: at most maxReaders, each for at most readerTime.
const (
	maxReaders = 64
	readerTime = 10 * time.Minute
)

// closeReader closes the reader of a file, and keeps what it recorded.
func (r *run) closeReader(ctx context.Context, f *file) error {
	if f.reader == nil {
		return nil
	}
	err := r.flush(ctx, f)
	r.dropReader(f)
	return err
}

// dropReader closes the reader of a file. If it had unsaved records, the file is read again.
func (r *run) dropReader(f *file) {
	if f.reader == nil {
		return
	}
	if f.reader.record.pending() && f.state.LeftOut == "" {
		f.state.Bytes = 0
		r.changed(f)
	}
	f.reader.growing.Close()
	f.reader = nil
	r.active = slices.DeleteFunc(r.active, func(other *file) bool { return other == f })
}

// flush commits what the reader of a file recorded. If another process recorded the file meanwhile, the file is read
// again.
func (r *run) flush(ctx context.Context, f *file) error {
	if f.reader == nil {
		return nil
	}
	if lines := f.reader.growing.Unplaced(); len(lines) > 0 { // of no session: they are kept as they are
		f.reader.record.add(ctx, "", lineage.ThreadID{}, lines)
	}
	if !f.reader.record.pending() {
		return nil
	}
	err := f.reader.record.flush(ctx)
	if err == nil {
		f.failures = 0
		return nil
	}
	r.dropReader(f)
	if isOvertaken(err) {
		r.waiting[f] = r.clock.Now()
		return nil
	}
	return err
}

// closeReaders closes the readers that were not used for some time, and all but the most recently used.
func (r *run) closeReaders(ctx context.Context, most int) error {
	for len(r.withRows) > 0 && r.clock.Now().Sub(r.withRows[0].rows.used) >= readerTime {
		r.dropRows(r.withRows[0])
	}
	for len(r.active) > most || len(r.active) > 0 && r.clock.Now().Sub(r.active[0].reader.used) >= readerTime {
		f := r.active[0]
		if err := r.setAside(ctx, f, r.closeReader(ctx, f)); err != nil {
			return err
		}
	}
	return nil
}
