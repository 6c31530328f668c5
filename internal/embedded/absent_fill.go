package embedded

import (
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/lineage/backend"
)

// growFilter starts to build a filter if there is none or it is too small. The write
// lock is held.
func (e *Engine) growFilter() {
	if f := e.absent.filter.ready.Load(); f != nil && f.room > 0 || e.absent.filter.next.Load() != nil {
		return
	}
	keys := e.counts.Blocks + e.counts.Erased + e.counts.Chunks + e.counts.Contexts
	f := newBloomFilter(2 * keys)
	f.room -= int64(keys)
	if keys == 0 {
		e.absent.filter.ready.Store(f)
		return
	}
	if e.begin() != nil {
		return
	}
	// From here on, commits add their keys themselves.
	e.absent.filter.next.Store(f)
	s := e.now()
	go func() {
		defer e.end()
		defer s.Close()
		if err := e.fillFilter(f, s); err == nil {
			e.absent.filter.ready.Store(f)
		}
		e.absent.filter.next.Store(nil) // without a filter, keys are looked up
	}()
}

// fillFilter adds the keys of a view.
func (e *Engine) fillFilter(f *bloomFilter, s view) error {
	for _, table := range []byte{keys.TableBlock, keys.TableChunk, keys.TableContext, keys.TableRemnant} {
		for entry, err := range s.Index.Scan(keys.Of(table), keys.PrefixEnd(keys.Of(table))) {
			if err == nil && e.closed.Load() {
				err = backend.ErrClosed
			}
			if err != nil {
				return err
			}
			k := [16]byte(entry.Key[1:])
			if table == keys.TableBlock || table == keys.TableChunk {
				k = contentKey(journal.Fingerprint(k[:]))
			}
			f.add(k[:])
		}
	}
	for print, err := range s.at.files.Fingerprints(s.at.packs.last) {
		if err == nil && e.closed.Load() {
			err = backend.ErrClosed
		}
		if err != nil {
			return err
		}
		k := contentKey(print)
		f.add(k[:])
	}
	return nil
}
