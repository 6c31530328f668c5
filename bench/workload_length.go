package bench

import "context"

// lengths forks a short history and a long one in turn, both in one store. The long
// one is the longest of the sizes, or as long as the large store up to a million
// messages, if that is longer.
func (r *run) lengths(ctx context.Context) error {
	short, long := r.config.Sizes[0], max(r.config.Sizes[len(r.config.Sizes)-1], min(r.config.StoreMessages, 1_000_000))
	for _, s := range r.systems() {
		if s.name != nameLineage || s.durability != normal {
			continue
		}
		o, err := r.open(ctx, s)
		if err != nil {
			return err
		}
		m := newMessages(&r.config, streamBase)
		var sides []contender
		for _, n := range []int{short, long} {
			b := &base{opened: o, length: long}
			if b.history, err = o.store.start(ctx); err == nil {
				err = loadInParts(ctx, b.history, m, n)
			}
			if err != nil {
				return closeAll([]*base{b}, err)
			}
			c := r.forks(b, b.each())
			c.system += ", " + count(n) + " messages"
			sides = append(sides, c)
		}
		err = r.compare(ctx, subject{workload: workLength, size: long}, sides)
		if err := closeAll([]*base{{opened: o}}, err); err != nil {
			return err
		}
	}
	return nil
}

// loadInParts gives a history n messages without holding all of them.
func loadInParts(ctx context.Context, h history, m *messages, n int) error {
	for n > 0 {
		k := min(n, 10_000)
		if err := h.load(ctx, m.some(k)); err != nil {
			return err
		}
		n -= k
	}
	return nil
}
