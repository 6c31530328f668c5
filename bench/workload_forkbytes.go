package bench

import "context"

const workForkBytes = "bytes on disk after forks"

// forkStorage measures the disk space of forks with one message each, in each system.
func (r *run) forkStorage(ctx context.Context) error {
	const length = 100
	for _, s := range r.systems() {
		if s.bare || s.durability == full {
			continue // the size does not depend on durability
		}
		for _, forks := range []int{1, 10, 100, 1_000} {
			r.config.Progress("bytes after " + count(forks) + " forks, " + s.name)
			bytes, err := r.forkStorageIn(ctx, s, length, forks)
			if err != nil {
				return err
			}
			r.fact(Row{Workload: workForkBytes, System: s.name, Size: forks, Unit: unitBytes, Value: float64(bytes)})
		}
	}
	return nil
}

// forkStorageIn returns the size of a store after closing. An open one has preallocated space or a
// log, whose size depends on the timing of background work.
func (r *run) forkStorageIn(ctx context.Context, s system, length, forks int) (int64, error) {
	o, err := r.open(ctx, s)
	if err != nil {
		return 0, err
	}
	defer o.close() //nolint:errcheck // discarded
	h, err := o.store.start(ctx)
	if err != nil {
		return 0, err
	}
	m := newMessages(&r.config, streamBase)
	if err := h.load(ctx, m.some(length)); err != nil {
		return 0, err
	}
	for range forks {
		f, err := h.fork(ctx, 0)
		if err != nil {
			return 0, err
		}
		if err := f.extend(ctx, m.one()); err != nil {
			return 0, err
		}
	}
	if s, ok := o.store.(*sqlStore); ok && s.schema != nil {
		return s.size() // closing drops it from the server
	}
	if err := o.store.close(); err != nil {
		return 0, err
	}
	return o.store.size()
}
