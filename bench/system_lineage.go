package bench

import (
	"context"
	"path/filepath"

	"github.com/lineage-store/lineage/lineage"
)

func lineageSystem(durability string) system {
	d := lineage.Full
	if durability == normal {
		d = lineage.Normal
	}
	return system{name: nameLineage, durability: durability, open: func(ctx context.Context, dir string) (store, error) {
		s := &lineageStore{dir: filepath.Join(dir, "store"), options: lineage.Options{Durability: d}}
		return s, s.open(ctx)
	}}
}

type lineageStore struct {
	dir     string
	options lineage.Options
	store   *lineage.Store
}

func (s *lineageStore) open(ctx context.Context) (err error) {
	s.store, err = lineage.Open(ctx, s.dir, s.options)
	return err
}

func (s *lineageStore) start(ctx context.Context) (history, error) {
	t, err := s.store.CreateThread(ctx, lineage.ThreadOptions{})
	if err != nil {
		return nil, err
	}
	c, err := t.Active(ctx)
	return &lineageHistory{s, c}, err
}

func (s *lineageStore) size() (int64, error) { return diskUse(s.dir) }

func (s *lineageStore) close() error { return s.store.Close() }

// settle waits for the index queue: Stats reads all of it.
func (s *lineageStore) settle(ctx context.Context) error {
	_, err := s.store.Stats(ctx)
	return err
}

func (s *lineageStore) shut() error { return s.store.Close() }

func (s *lineageStore) openAgain(ctx context.Context) error { return s.open(ctx) }

type lineageHistory struct {
	store   *lineageStore
	context *lineage.Context
}

func item(position int, message []byte) lineage.Item {
	return lineage.Item{Role: roleOf(position), Body: message}
}

func (h *lineageHistory) extend(ctx context.Context, message []byte) error {
	_, err := h.context.Extend(ctx, item(0, message))
	return err
}

func (h *lineageHistory) load(ctx context.Context, messages [][]byte) error {
	const together = 1_000
	for len(messages) > 0 {
		n := min(together, len(messages))
		items := make([]lineage.Item, n)
		for i := range items {
			items[i] = item(i, messages[i])
		}
		if _, err := h.context.Extend(ctx, items...); err != nil {
			return err
		}
		messages = messages[n:]
	}
	return nil
}

func (h *lineageHistory) fork(ctx context.Context, n int) (history, error) {
	var o lineage.ForkOptions
	if n > 0 {
		tip, err := h.context.Tip(ctx)
		if err != nil {
			return nil, err
		}
		if o.At, err = h.store.store.At(ctx, tip, uint64(n)); err != nil {
			return nil, err
		}
	}
	c, err := h.context.Fork(ctx, o)
	return &lineageHistory{h.store, c}, err
}

func (h *lineageHistory) read(ctx context.Context, last int) (int, error) {
	n := 0
	for e, err := range h.context.Entries(ctx, lineage.Window{Last: uint64(last)}) {
		if err != nil {
			return n, err
		}
		if len(e.Body) == 0 {
			return n, lineage.ErrCorrupt
		}
		n++
	}
	return n, nil
}
