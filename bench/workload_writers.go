package bench

import (
	"context"
	"errors"
	"sync"
)

// writers compares the throughput of 64 concurrent writers, each with its own history, with that of
// one.
func (r *run) writers(ctx context.Context) error {
	for _, s := range r.systems() {
		if s.name == nameDeepAgents || s.bare {
			continue // they support only one writer
		}
		if err := r.writersOf(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) writersOf(ctx context.Context, s system) error {
	o, err := r.open(ctx, s)
	if err != nil {
		return err
	}
	defer o.close() //nolint:errcheck // discarded
	histories := make([]history, many)
	for i := range histories {
		if histories[i], err = o.store.start(ctx); err != nil {
			return err
		}
		if err := histories[i].load(ctx, newMessages(&r.config, uint64(1000+i)).some(1)); err != nil {
			return err
		}
	}
	each := [2]int{64, 20}
	if s.name == nameLineage {
		each = [2]int{256, 300} // more, because it is fast
	}
	return r.compare(ctx, subject{workload: workWriters, unit: unitPerSec, rate: true}, r.sidesOf(s, each, func(ctx context.Context, w int, message []byte) error {
		return histories[w].extend(ctx, message)
	}))
}

const (
	workWriters = "writers"
	many        = 64
	oneWriter   = ", 1 writer"
	manyWriters = ", 64 writers"
)

// sidesOf returns one writer and many writers, with each extends.
func (r *run) sidesOf(s system, each [2]int, extend func(ctx context.Context, w int, message []byte) error) []contender {
	m := newMessages(&r.config, streamExtend)
	side := func(writers, each int) contender {
		var batch [][]byte
		return contender{
			durability: s.durability, elsewhere: s.elsewhere,
			before: func(context.Context) error { batch = m.some(writers * each); return nil },
			round: func(ctx context.Context) (int, error) {
				var wg sync.WaitGroup
				errs := make([]error, writers)
				for w := range writers {
					wg.Go(func() {
						for _, one := range batch[w*each : (w+1)*each] {
							if errs[w] = extend(ctx, w, one); errs[w] != nil {
								return
							}
						}
					})
				}
				wg.Wait()
				return writers * each, errors.Join(errs...)
			},
		}
	}
	one, all := side(1, each[0]), side(many, each[1])
	one.system, all.system = s.name+oneWriter, s.name+manyWriters
	return []contender{one, all}
}
