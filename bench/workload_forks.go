package bench

import (
	"context"
	"errors"
	"fmt"
)

// errWrongCount is returned by a benchmark whose system answers wrongly.
type errWrongCount struct {
	system         string
	got, expecting int
}

func (e errWrongCount) Error() string {
	return fmt.Sprintf("%s read %d messages where there are %d", e.system, e.got, e.expecting)
}

// largest returns the greatest size that is not above the limit.
func (r *run) largest(limit int) int {
	n := r.config.Sizes[0]
	for _, size := range r.config.Sizes {
		if size <= limit {
			n = size
		}
	}
	return n
}

// fanout forks a subagent from a parent, which says something, a hundred times.
func (r *run) fanout(ctx context.Context) error {
	const children = 100
	n := r.largest(1_000)
	bases, err := r.bases(ctx, n, false)
	if err != nil {
		return closeAll(bases, err)
	}
	var contenders []contender
	for _, b := range bases {
		m := newMessages(&r.config, streamExtend)
		var batch [][]byte
		contenders = append(contenders, contender{
			system: b.name, durability: b.durability, size: b.store.size,
			before: func(context.Context) error { batch = m.some(children); return nil },
			round: func(ctx context.Context) (int, error) {
				for _, one := range batch {
					child, err := b.history.fork(ctx, 0)
					if err != nil {
						return 0, err
					}
					if err := child.extend(ctx, one); err != nil {
						return 0, err
					}
				}
				return children, nil
			},
		})
	}
	return closeAll(bases, r.compare(ctx, subject{workload: "fanout", size: n, rounds: max(3, r.config.Rounds/3)}, contenders))
}

// deep forks a fork of a fork, each with a message of its own, and reads at the end
// of the line.
func (r *run) deep(ctx context.Context) error {
	const depth = 1_000
	var bases []*base
	defer func() { _ = closeAll(bases, nil) }()
	var forks, reads, windows []contender
	for _, s := range r.systems() {
		if s.bare || s.durability == full || s.most > 0 && s.most < 10*depth {
			continue // a sync each says nothing about depth, and copies are measured elsewhere
		}
		o, err := r.open(ctx, s)
		if err != nil {
			return err
		}
		b := &base{opened: o}
		bases = append(bases, b)
		if b.history, err = o.store.start(ctx); err != nil {
			return err
		}
		m := newMessages(&r.config, streamBase)
		for range depth {
			if err := b.history.extend(ctx, m.one()); err != nil {
				return err
			}
			if b.history, err = b.history.fork(ctx, 0); err != nil {
				return err
			}
		}
		forks, reads = append(forks, r.forks(b)), append(reads, reading(b, 0, 3, depth))
		windows = append(windows, reading(b, windowLast, 20, windowLast))
	}
	return errors.Join(
		r.compare(ctx, subject{workload: "fork a fork of 1,000 forks", size: depth}, forks),
		r.compare(ctx, subject{workload: "read through 1,000 forks", size: depth, rounds: max(3, r.config.Rounds/3)}, reads),
		r.compare(ctx, subject{workload: "window after 1,000 forks", size: depth}, windows),
	)
}

// wide forks one place again and again: the cost when there are few forks and when
// there are a hundred thousand.
func (r *run) wide(ctx context.Context) error {
	systems := r.systems()
	for _, s := range systems {
		if s.bare || s.durability == full || s.name == nameFiles || s.name == nameSnapshots || s.name == nameDeepAgents {
			continue
		}
		if err := r.wideIn(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) wideIn(ctx context.Context, s system) error {
	o, err := r.open(ctx, s)
	if err != nil {
		return err
	}
	b := &base{opened: o}
	defer b.close() //nolint:errcheck // it is thrown away
	if b.history, err = o.store.start(ctx); err != nil {
		return err
	}
	if err := b.history.load(ctx, newMessages(&r.config, streamBase).some(100)); err != nil {
		return err
	}
	forks := 0
	for _, reach := range []int{r.config.Forks / 100, r.config.Forks / 10, r.config.Forks} {
		for forks < reach-(r.config.Rounds+1)*b.each() {
			if _, err := b.history.fork(ctx, 0); err != nil {
				return err
			}
			if forks++; forks%1000 == 0 {
				if err := ctx.Err(); err != nil {
					return err
				}
				r.config.Progress(fmt.Sprintf("wide, %s, %s forks", b.name, count(forks)))
			}
		}
		if err := r.compare(ctx, subject{workload: "fork among forks", size: reach}, []contender{r.forks(b)}); err != nil {
			return err
		}
		forks += (r.config.Rounds + 1) * b.each()
	}
	return nil
}
