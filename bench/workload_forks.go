package bench

import (
	"context"
	"errors"
	"fmt"
)

// errWrongCount is returned if a system returns a wrong number of messages.
type errWrongCount struct {
	system         string
	got, expecting int
}

func (e errWrongCount) Error() string {
	return fmt.Sprintf("%s read %d messages where there are %d", e.system, e.got, e.expecting)
}

// largest returns the largest configured size up to a limit.
func (r *run) largest(limit int) int {
	n := r.config.Sizes[0]
	for _, size := range r.config.Sizes {
		if size <= limit {
			n = size
		}
	}
	return n
}

// fanout forks and extends a subagent a hundred times.
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
			system: b.name, durability: b.durability, elsewhere: b.elsewhere, size: b.store.size,
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
	return closeAll(bases, r.compare(ctx, subject{workload: "fanout", size: n, rounds: slow(r.config.Rounds), warm: true}, contenders))
}

// deep creates a chain of forks, each with a message, and reads from its end.
func (r *run) deep(ctx context.Context) error {
	const depth = 1_000
	var bases []*base
	defer func() { _ = closeAll(bases, nil) }()
	var forks, reads, windows []contender
	for _, s := range r.systems() {
		if s.bare || s.durability == full || s.maxLength > 0 && s.maxLength < 10*depth {
			continue // syncs do not depend on depth, and copies are measured elsewhere
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
		forks, reads = append(forks, r.forks(b, b.each())), append(reads, reading(b, 0, 3, depth))
		windows = append(windows, reading(b, windowLast, 20, windowLast))
	}
	return errors.Join(
		r.compare(ctx, subject{workload: "fork a fork of 1,000 forks", size: depth}, forks),
		r.compare(ctx, subject{workload: "read through 1,000 forks", size: depth, rounds: slow(r.config.Rounds)}, reads),
		r.compare(ctx, subject{workload: "window after 1,000 forks", size: depth}, windows),
	)
}

const workWide = "fork among forks"

// wide forks the same span repeatedly: the cost with few forks and with a hundred thousand.
func (r *run) wide(ctx context.Context) error {
	var bases []*base
	defer func() { _ = closeAll(bases, nil) }()
	for _, s := range r.systems() {
		if s.bare || s.durability == full || s.name == nameDeepAgents {
			continue
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
		if err := b.history.load(ctx, newMessages(&r.config, streamBase).some(100)); err != nil {
			return err
		}
	}
	forks := make([]int, len(bases))
	for _, reach := range []int{r.config.Forks / 100, r.config.Forks / 10, r.config.Forks} {
		var contenders []contender
		for i, b := range bases {
			if b.elsewhere && reach > 10_000 {
				r.skip(Skipped{Workload: workWide, System: b.name, Size: reach, Why: "each is a request: making them takes minutes"})
				continue
			}
			times := max(1, min(b.each(), reach/(2*(r.config.Rounds+1)))) // most exist before
			measured := (r.config.Rounds + 1) * times
			if err := r.forkUntil(ctx, b, &forks[i], reach-measured); err != nil {
				return err
			}
			contenders = append(contenders, r.forks(b, times))
			forks[i] += measured
		}
		if err := r.compare(ctx, subject{workload: workWide, size: reach}, contenders); err != nil {
			return err
		}
	}
	return nil
}

// forkUntil forks until there is the wanted number of forks.
func (r *run) forkUntil(ctx context.Context, b *base, forks *int, wanted int) error {
	for ; *forks < wanted; *forks++ {
		if _, err := b.history.fork(ctx, 0); err != nil {
			return err
		}
		if *forks%1000 == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			r.config.Progress(fmt.Sprintf("wide, %s, %s forks", b.name, count(*forks)))
		}
	}
	return nil
}
