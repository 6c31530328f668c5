package follow

import (
	"context"
	"hash"
	"os"
	"time"

	"github.com/lineage-store/lineage/internal/vfs"
)

// settleTime is how long a file must be unchanged before its modification time is reliable: file systems count time
// in steps of some milliseconds.
const settleTime = 100 * time.Millisecond

// settled returns the modification time of a file that was read, or 0 if the file may change without getting another
// time. Then it is examined again.
func (r *run) settled(f *file, now stamp) int64 {
	if time.Since(time.Unix(0, now.modified)).Abs() >= settleTime {
		return now.modified
	}
	if at := r.clock.Now().Add(settleTime); r.waiting[f].IsZero() || at.Before(r.waiting[f]) {
		r.waiting[f] = at
	}
	return 0
}

// settle waits until the modification times of recently changed files are reliable. The next run reads those that
// changed meanwhile.
func (r *run) settle(ctx context.Context) error {
	var recent []*file
	for f := range r.waiting {
		if s := f.state; s.Modified == 0 && s.LeftOut == "" && s.Bytes == s.Size && f.byLines() && f.held.IsZero() {
			recent = append(recent, f)
		}
	}
	if len(recent) == 0 {
		return nil
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(settleTime):
	}
	for _, f := range recent {
		opened, err := vfs.OpenFile(f.path, os.O_RDONLY)
		if err != nil {
			continue
		}
		if info, err := opened.Stat(); err == nil && info.Size() == f.state.Size {
			var found *Source
			var sum hash.Hash
			found, sum, err = r.recorded(ctx, f, opened, stampOf(info))
			if err == nil && sum != nil && found.Recorded.Bytes == f.state.Bytes {
				f.state.Modified = stampOf(info).modified
				r.changed(f)
			}
		}
		opened.Close()
	}
	return context.Cause(ctx)
}
