package bench

import "context"

const workForkBytes = "bytes on disk after forks"

// forkStorage measures what forks of a history, each extended by a message, take on
// disk in each system.
func (r *run) forkStorage(ctx context.Context) error {
	const length = 100
	for _, s := range r.systems() {
		if s.bare || s.durability == full {
			continue // durability changes no size
		}
		if err := r.forkStorageIn(ctx, s, length); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) forkStorageIn(ctx context.Context, s system, length int) error {
	o, err := r.open(ctx, s)
	if err != nil {
		return err
	}
	defer o.close() //nolint:errcheck // it is thrown away
	h, err := o.store.start(ctx)
	if err != nil {
		return err
	}
	m := newMessages(&r.config, streamBase)
	if err := h.load(ctx, m.some(length)); err != nil {
		return err
	}
	done := 0
	for _, forks := range []int{1, 10, 100, 1_000} {
		r.config.Progress("bytes after " + count(forks) + " forks, " + s.name)
		for ; done < forks; done++ {
			f, err := h.fork(ctx, 0)
			if err != nil {
				return err
			}
			if err := f.extend(ctx, m.one()); err != nil {
				return err
			}
		}
		bytes, err := o.store.size()
		if err != nil {
			return err
		}
		r.fact(Row{Workload: workForkBytes, System: s.name, Size: forks, Unit: unitBytes, Value: float64(bytes)})
	}
	return nil
}
