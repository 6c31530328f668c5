package bench

import (
	"context"
	"errors"
)

const (
	windowLast = 20 // messages that a window reads
	replayed   = 10 // messages from the edited one on that are said again
)

// subject names of what is measured at each length of history.
const (
	workExtend = "extend"
	workFork   = "fork"
	workRead   = "read"
	workWindow = "window"
	workEdit   = "edit and replay"
)

// base is a history of a given length in a system's store.
type base struct {
	*opened
	history history
}

// bases builds a history of n messages in each system that is measured at that length.
func (r *run) bases(ctx context.Context, n int, bare bool) ([]*base, error) {
	var all []*base
	for _, s := range r.systems() {
		if s.bare && !bare {
			continue
		}
		if s.most > 0 && n > s.most {
			r.skip(Skipped{System: s.name, Size: n, Why: "it rewrites the whole history at each step: too slow at this length"})
			continue
		}
		r.config.Progress("building a history of " + count(n) + " messages in " + s.name)
		o, err := r.open(ctx, s)
		if err != nil {
			return all, err
		}
		b := &base{opened: o}
		all = append(all, b)
		if b.history, err = o.store.start(ctx); err != nil {
			return all, err
		}
		if err := loadInParts(ctx, b.history, newMessages(&r.config, streamBase), n); err != nil {
			return all, err
		}
	}
	return all, nil
}

func closeAll(bases []*base, err error) error {
	for _, b := range bases {
		err = errors.Join(err, b.close())
	}
	return err
}

// histories measures the operations on a history at each length.
func (r *run) histories(ctx context.Context) error {
	for _, n := range r.config.Sizes {
		bases, err := r.bases(ctx, n, true)
		if err == nil {
			err = r.onHistories(ctx, n, bases)
		}
		if err := closeAll(bases, err); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) onHistories(ctx context.Context, n int, bases []*base) error {
	var extends, forks, reads, windows, edits []contender
	for _, b := range bases {
		extends = append(extends, r.extends(b))
		forks = append(forks, r.forks(b))
		if b.bare {
			continue
		}
		reads = append(reads, reading(b, 0, max(1, 2000/n), n))
		windows = append(windows, reading(b, windowLast, 20, min(n, windowLast)))
		if n >= replayed && b.name != nameDeepAgents { // which cannot fork inside a history
			edits = append(edits, r.edits(b, n))
		}
	}
	for _, w := range []struct {
		name       string
		contenders []contender
		rounds     int
	}{
		{workExtend, extends, 0}, {workFork, forks, 0},
		{workRead, reads, max(3, r.config.Rounds/3)}, {workWindow, windows, 0}, {workEdit, edits, 0},
	} {
		if len(w.contenders) == 0 {
			continue
		}
		if err := r.compare(ctx, subject{workload: w.name, size: n, rounds: w.rounds}, w.contenders); err != nil {
			return err
		}
	}
	return nil
}

// each is how often an operation is done in a round: often enough to be timed, and
// so seldom that a history of ten messages stays about that.
func (b *base) each() int {
	if b.durability == full {
		return 10
	}
	return 20
}

// extends appends to a fork of the base made for each round, so that the length
// stays what it is. The fork's first message, which may cost more, is not timed.
func (r *run) extends(b *base) contender {
	m := newMessages(&r.config, streamExtend)
	var h history
	var batch [][]byte
	return contender{
		system: b.name, durability: b.durability, size: b.store.size,
		before: func(ctx context.Context) (err error) {
			if h, err = b.history.fork(ctx, 0); err != nil {
				return err
			}
			batch = m.some(b.each())
			return h.extend(ctx, m.one())
		},
		round: func(ctx context.Context) (int, error) {
			if e, ok := h.(batcher); ok {
				return len(batch), e.extendEach(ctx, batch)
			}
			for _, one := range batch {
				if err := h.extend(ctx, one); err != nil {
					return 0, err
				}
			}
			return len(batch), nil
		},
	}
}

// A batcher is a history in another process, which does many operations for one
// request so that asking is not what is measured.
type batcher interface {
	extendEach(ctx context.Context, messages [][]byte) error
	forkTimes(ctx context.Context, n int) error
}

func (r *run) forks(b *base) contender {
	return contender{
		system: b.name, durability: b.durability, size: b.store.size,
		round: func(ctx context.Context) (int, error) {
			n := b.each()
			if e, ok := b.history.(batcher); ok {
				return n, e.forkTimes(ctx, n)
			}
			for range n {
				if _, err := b.history.fork(ctx, 0); err != nil {
					return 0, err
				}
			}
			return n, nil
		},
	}
}

// reading reads the last messages of the base and checks that they are there.
func reading(b *base, last, times, expected int) contender {
	return contender{
		system: b.name, durability: b.durability,
		round: func(ctx context.Context) (int, error) {
			for range times {
				n, err := b.history.read(ctx, last)
				if err != nil {
					return 0, err
				}
				if n != expected {
					return 0, errWrongCount{b.name, n, expected}
				}
			}
			return times, nil
		},
	}
}

// edits forks before one of the last messages, says it differently and says those
// after it again.
func (r *run) edits(b *base, n int) contender {
	m := newMessages(&r.config, streamExtend+100)
	var batch [][]byte
	times := 5
	return contender{
		system: b.name, durability: b.durability, size: b.store.size,
		before: func(context.Context) error { batch = m.some(times * replayed); return nil },
		round: func(ctx context.Context) (int, error) {
			for i := range times {
				h, err := b.history.fork(ctx, max(1, n-replayed))
				if err != nil {
					return 0, err
				}
				for _, one := range batch[i*replayed : (i+1)*replayed] {
					if err := h.extend(ctx, one); err != nil {
						return 0, err
					}
				}
			}
			return times, nil
		},
	}
}
