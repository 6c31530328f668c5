package bench

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
)

const (
	workExtendOn = "extend, sustained"
	workForkOn   = "fork, sustained"
)

// sustained extends and forks without pause, more often than fits in any queue or overlay, so that
// background work runs during the timing. A round ends with closing the store, which counts as CPU
// time, so that nothing is left.
func (r *run) sustained(ctx context.Context) error {
	var all []*paused
	defer func() {
		for _, p := range all {
			_ = p.base.close() // discarded; may be closed already
		}
	}()
	var extends, forks []contender
	for _, s := range r.systems() {
		if s.durability != normal || s.name != nameLineage && s.name != nameWrite {
			continue
		}
		o, err := r.open(ctx, s)
		if err != nil {
			return err
		}
		p := &paused{base: &base{opened: o}}
		all = append(all, p)
		batch := newMessages(&r.config, streamExtend).some(1_000)
		var next uint64
		extends = append(extends, r.continuing(p, func(ctx context.Context) error {
			one := batch[next%uint64(len(batch))]
			next++
			var number [8]byte // makes the content unique
			binary.BigEndian.PutUint64(number[:], next)
			hex.Encode(one, number[:])
			return p.history.extend(ctx, one)
		}))
		forks = append(forks, r.continuing(p, func(ctx context.Context) error {
			_, err := p.history.fork(ctx, 0)
			return err
		}))
	}
	rounds := slow(r.config.Rounds)
	return errors.Join(
		r.compare(ctx, subject{workload: workExtendOn, size: r.config.Sustained, rounds: rounds}, extends),
		r.compare(ctx, subject{workload: workForkOn, size: r.config.Sustained, rounds: rounds}, forks),
	)
}

// paused is a history in a store that is open only during rounds.
type paused struct {
	*base
	shut bool
}

// continuing repeats an operation in a new history per round.
func (r *run) continuing(p *paused, one func(ctx context.Context) error) contender {
	again, ok := p.store.(reopener)
	c := contender{
		system: p.name, durability: p.durability, size: p.store.size,
		before: func(ctx context.Context) (err error) {
			if p.shut {
				if err := again.openAgain(ctx); err != nil {
					return err
				}
				p.shut = false
			}
			if p.history, err = p.store.start(ctx); err != nil {
				return err
			}
			return p.history.load(ctx, newMessages(&r.config, streamBase).some(10))
		},
		round: func(ctx context.Context) (int, error) {
			for range r.config.Sustained {
				if err := one(ctx); err != nil {
					return 0, err
				}
			}
			return r.config.Sustained, nil
		},
	}
	if ok {
		c.after = func(context.Context) error {
			p.shut = true
			return again.shut()
		}
	}
	return c
}
