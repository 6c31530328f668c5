package bench

import "context"

// lengths forks a short and a long history in one store, interleaved. The long one has the largest
// of the sizes or, if that is more, the size of the large store up to a million messages.
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

// loadInParts adds n messages to a history without holding all in memory.
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
