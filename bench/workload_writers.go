package bench

import (
	"context"
	"sync"
)

// writers compares what 64 writers get done at once, each in a history of its own,
// with what one does.
func (r *run) writers(ctx context.Context) error {
	for _, s := range r.systems() {
		if s.name == nameFiles || s.name == nameSnapshots || s.name == nameDeepAgents || s.bare {
			continue // they know one writer only
		}
		if err := r.writersOf(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) writersOf(ctx context.Context, s system) error {
	const many = 64
	o, err := r.open(ctx, s)
	if err != nil {
		return err
	}
	defer o.close() //nolint:errcheck // it is thrown away
	histories := make([]history, many)
	for i := range histories {
		if histories[i], err = o.store.start(ctx); err != nil {
			return err
		}
		if err := histories[i].load(ctx, newMessages(&r.config, uint64(1000+i)).some(1)); err != nil {
			return err
		}
	}
	m := newMessages(&r.config, streamExtend)
	side := func(writers, each int) contender {
		var batch [][]byte
		return contender{
			system: s.name, durability: s.durability,
			before: func(context.Context) error { batch = m.some(writers * each); return nil },
			round: func(ctx context.Context) (int, error) {
				var wg sync.WaitGroup
				errs := make([]error, writers)
				for w := range writers {
					wg.Go(func() {
						for _, one := range batch[w*each : (w+1)*each] {
							if errs[w] = histories[w].extend(ctx, one); errs[w] != nil {
								return
							}
						}
					})
				}
				wg.Wait()
				for _, err := range errs {
					if err != nil {
						return 0, err
					}
				}
				return writers * each, nil
			},
		}
	}
	one, all := side(1, 64), side(many, 20)
	one.system, all.system = s.name+", 1 writer", s.name+", 64 writers"
	return r.compare(ctx, subject{workload: "writers", unit: unitPerSec, rate: true}, []contender{one, all})
}
