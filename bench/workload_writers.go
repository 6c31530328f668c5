package bench

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// writers compares the throughput of 64 concurrent writers, each with its own history, with that of
// one.
func (r *run) writers(ctx context.Context) error {
	for _, s := range r.systems() {
		if s.name == nameFiles || s.name == nameSnapshots || s.name == nameDeepAgents || s.bare {
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
	extend := func(ctx context.Context, w int, message []byte) error { return histories[w].extend(ctx, message) }
	each := [2]int{64, 20}
	if s.name == nameLineage {
		each = [2]int{256, 300} // more, because it is fast
	}
	sides := r.sidesOf(s, s.name, each, extend)
	if s.name == nameLineage && s.durability == full {
		least, err := r.groupCommit(ctx)
		if err != nil {
			return err
		}
		defer least.file.Close()
		var answers [many]chan error
		for i := range answers {
			answers[i] = make(chan error, 1)
		}
		extra := make([]byte, max(0, r.extendBytes-int64(r.config.MessageBytes)))
		sides = append(sides, r.sidesOf(s, nameGroupCommit, each, func(_ context.Context, w int, message []byte) error {
			return least.write(append(slices.Clip(message), extra...), answers[w])
		})...)
	}
	return r.compare(ctx, subject{workload: workWriters, unit: unitPerSec, rate: true}, sides)
}

const (
	workWriters     = "writers"
	nameGroupCommit = "shared syncs alone"
	many            = 64
	oneWriter       = ", 1 writer"
	manyWriters     = ", 64 writers"
)

func (r *run) groupCommit(ctx context.Context) (*groupCommit, error) {
	if err := r.calibrate(ctx); err != nil {
		return nil, err
	}
	dir, err := r.directory("shared-syncs")
	if err != nil {
		return nil, err
	}
	f, err := os.Create(filepath.Join(dir, "log"))
	return &groupCommit{file: f}, err
}

// sidesOf returns one writer and many writers, with each extends.
func (r *run) sidesOf(s system, name string, each [2]int, extend func(ctx context.Context, w int, message []byte) error) []contender {
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
	one.system, all.system = name+oneWriter, name+manyWriters
	return []contender{one, all}
}
