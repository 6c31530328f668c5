package embedded

import "github.com/lineage-store/lineage/internal/index"

// shadow returns an engine with the same journal and an empty index, and a function that closes
// and removes that index.
func (e *Engine) shadow() (s *Engine, discard func(), err error) {
	dir, remove := "", func() {}
	if !e.opt.InMemory {
		if dir, remove, err = e.dir.scratch(); err != nil {
			return nil, nil, err
		}
	}
	s = newEngine(dir, e.opt)
	s.journal, s.builder.Digests = e.journal, e.builder.Digests
	s.index, err = index.Open(s.dir.index(), index.Options{OverlayBytes: e.opt.OverlayBytes, InMemory: e.opt.InMemory, Logger: e.opt.Logger})
	discard = func() {
		if s.index != nil {
			_ = s.index.Close() // it is deleted
		}
		remove()
	}
	if err != nil {
		discard()
		return nil, nil, err
	}
	return s, discard, nil
}
