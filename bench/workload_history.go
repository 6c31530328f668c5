package bench

import (
	"context"
	"errors"
)

const (
	windowLast = 20 // messages that a window reads
	replayed   = 10 // messages replayed by an edit
)

// Names of the workloads measured at each length of history.
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
	length  int
}

// bases creates a history of n messages in each system that is measured at that length.
func (r *run) bases(ctx context.Context, n int, bare bool) ([]*base, error) {
	var all []*base
	for _, s := range r.systems() {
		if s.bare && !bare {
			continue
		}
		if s.maxLength > 0 && n > s.maxLength {
			r.skip(Skipped{System: s.name, Durability: s.durability, Size: n, Why: s.tooLong})
			continue
		}
		r.config.Progress("building a history of " + count(n) + " messages in " + s.name)
		o, err := r.open(ctx, s)
		if err != nil {
			return all, err
		}
		b := &base{opened: o, length: n}
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
		extend, fork := r.extends(b), r.forks(b, b.each())
		if err := r.measureFirst(ctx, b, &extend, &fork); err != nil {
			return err
		}
		extends, forks = append(extends, extend), append(forks, fork)
		if b.bare {
			continue
		}
		reads = append(reads, reading(b, 0, max(1, 2000/n), n))
		windows = append(windows, reading(b, windowLast, 20, min(n, windowLast)))
		if n >= replayed && b.name != nameDeepAgents { // it cannot fork inside a history
			edits = append(edits, r.edits(b, n))
		}
	}
	for _, w := range []struct {
		name       string
		contenders []contender
		rounds     int
	}{
		{workExtend, extends, 0}, {workFork, forks, 0},
		{workRead, reads, slow(r.config.Rounds)}, {workWindow, windows, 0}, {workEdit, edits, 0},
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

// measureFirst measures the first extend and the first fork of each round separately. This is not
// possible if one request does many: it would measure the request.
func (r *run) measureFirst(ctx context.Context, b *base, extend, fork *contender) error {
	if _, ok := b.history.(batcher); ok {
		return nil
	}
	h, err := b.history.fork(ctx, 0)
	if err != nil {
		return err
	}
	m := newMessages(&r.config, streamFirst)
	if err := h.extend(ctx, m.one()); err != nil {
		return err
	}
	next := m.some(r.config.Rounds + 1)
	extend.first = func(ctx context.Context) error {
		message := next[0]
		next = next[1:]
		return h.extend(ctx, message)
	}
	fork.first = func(ctx context.Context) error {
		_, err := b.history.fork(ctx, 0)
		return err
	}
	return nil
}

// each is the number of operations in a round: enough to be timed. Background work fits in the
// store's queue; the workload sustained measures more.
func (b *base) each() int {
	switch {
	case b.durability == full:
		return 10
	case b.name == nameLineage || b.bare:
		return 200 // they are fast
	}
	return 20
}

// extends appends to new forks of the base in each round, so that the length hardly changes: a
// short history gets at most twenty. The first message of a fork, which may cost more, is not
// timed.
func (r *run) extends(b *base) contender {
	m := newMessages(&r.config, streamExtend)
	times, perFork := b.each(), b.each()
	if b.length < 1_000 {
		perFork = min(perFork, 20)
	}
	forks := make([]history, times/perFork)
	var batch [][]byte
	return contender{
		system: b.name, durability: b.durability, elsewhere: b.elsewhere, size: b.store.size, after: settling(b.store),
		before: func(ctx context.Context) (err error) {
			for i := range forks {
				if forks[i], err = b.history.fork(ctx, 0); err != nil {
					return err
				}
				if err := forks[i].extend(ctx, m.one()); err != nil {
					return err
				}
			}
			batch = m.some(times)
			return nil
		},
		round: func(ctx context.Context) (int, error) {
			for i, h := range forks {
				part := batch[i*perFork : (i+1)*perFork]
				if e, ok := h.(batcher); ok {
					if err := e.extendEach(ctx, part); err != nil {
						return 0, err
					}
					continue
				}
				for _, one := range part {
					if err := h.extend(ctx, one); err != nil {
						return 0, err
					}
				}
			}
			return times, nil
		},
	}
}

// batcher is a history in another process that does many operations per request, so that the
// request is not what is measured.
type batcher interface {
	extendEach(ctx context.Context, messages [][]byte) error
	forkTimes(ctx context.Context, n int) error
}

// forks forks the base several times per round.
func (r *run) forks(b *base, times int) contender {
	return contender{
		system: b.name, durability: b.durability, elsewhere: b.elsewhere, size: b.store.size, after: settling(b.store),
		round: func(ctx context.Context) (int, error) {
			if e, ok := b.history.(batcher); ok {
				return times, e.forkTimes(ctx, times)
			}
			for range times {
				if _, err := b.history.fork(ctx, 0); err != nil {
					return 0, err
				}
			}
			return times, nil
		},
	}
}

// reading reads the last messages of the base and checks their number.
func reading(b *base, last, times, expected int) contender {
	return contender{
		system: b.name, durability: b.durability, elsewhere: b.elsewhere,
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

// edits forks before one of the last messages, replaces it and replays those after it.
func (r *run) edits(b *base, n int) contender {
	m := newMessages(&r.config, streamExtend+100)
	var batch [][]byte
	times := 5
	return contender{
		system: b.name, durability: b.durability, elsewhere: b.elsewhere, size: b.store.size, after: settling(b.store),
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
