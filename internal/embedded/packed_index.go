package embedded

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/lineage-store/lineage/internal/embedded/collect"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/embedded/recent"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/journal"
)

// packedTables are the tables whose entries packs replace.
var packedTables = []byte{keys.TableBlock, keys.TableCommit, keys.TableSpan, keys.TableChunk}

// packedEntry records the last segment that packs answer for.
func packedEntry(last uint32) index.Entry {
	return index.Entry{Key: keys.Of(keys.TablePackedUpTo), Value: binary.AppendUvarint(nil, uint64(last))}
}

var errPacks = errors.New("the index relies on packs that do not exist or have no lookup tables")

// openPacks determines which packs answer below an index that was just opened. Below
// an empty index these are all sound packs.
func (e *Engine) openPacks() error {
	v := e.journal.FileSet()
	defer v.Release()
	if e.index.State().Number == 0 {
		last, err := v.Findable(0)
		if err != nil && !errors.Is(err, journal.ErrUnlisted) {
			e.opt.Logger.Warn("index is built without the lists of packs", "err", err)
		}
		e.beginWith(last)
		return nil
	}
	value, ok, err := e.index.Get(keys.Of(keys.TablePackedUpTo))
	if err != nil || !ok {
		return err
	}
	values := keys.ReadVarints(value)
	last := uint32(values.Next())
	if values.Bad || last > v.Listed() && e.damage == nil {
		return errPacks
	}
	e.setPacks(last, e.index.State().Number, e.packs.Load().hidden)
	return nil
}

// beginWith initializes an empty index that relies on packs up to a segment.
func (e *Engine) beginWith(last uint32) {
	e.setPacks(last, 0, e.packs.Load().hidden)
	if last > 0 {
		state := e.index.State()
		state.Store = e.journal.StoreID()
		e.index.Apply(state, []index.Entry{packedEntry(last)})
	}
}

// dropPacked deletes index entries that packs replace. The index first records the
// new limit; if the deletion is interrupted, the remaining entries agree with the
// packs. The caller holds packing.
func (e *Engine) dropPacked(ctx context.Context) error {
	upTo := e.packs.Load().last
	last, err := e.findable(ctx, upTo)
	if err != nil || last == upTo {
		return err
	}
	e.write.Lock()
	e.index.Apply(e.index.State(), []index.Entry{packedEntry(last)})
	e.setPacks(last, e.index.State().Number, e.packs.Load().hidden)
	e.write.Unlock()
	return e.index.Drop(ctx, packedTables, func(key, value []byte) bool { return inPacks(key, value, last) })
}

// compactIndex compacts the index, without entries that packs replace and values that follow from messages.
func (e *Engine) compactIndex(ctx context.Context) error {
	last := e.packs.Load().last
	return e.index.Compact(ctx, func(key, value []byte) []byte {
		if inPacks(key, value, last) {
			return nil
		}
		return keys.Sealed(key, value)
	})
}

// findable returns the last segment that packs can answer for, given a known lower
// bound. A pack without lookup tables is rewritten, unless the store is small.
func (e *Engine) findable(ctx context.Context, known uint32) (uint32, error) {
	for {
		v := e.journal.FileSet()
		last, err := v.Findable(known)
		v.Release()
		switch {
		case errors.Is(err, journal.ErrLookup):
			e.opt.Logger.Warn("damaged lists of a pack: the pack is rewritten", "err", err)
		case !errors.Is(err, journal.ErrUnlisted):
			return last, err
		case e.isSmall():
			return last, nil
		}
		found := false
		for _, s := range e.journal.Segments() {
			if s.First <= last+1 && last+1 <= s.Last {
				found = true
				if _, err := e.journal.Rewrite(ctx, s.First, s.Last, journal.RewriteOptions{}); err != nil {
					return last, err
				}
			}
		}
		if !found {
			return last, err
		}
		known = last
	}
}

// unlisted reports whether a new pack needs no lookup tables: the index of a small
// archive is rebuilt quickly.
func (e *Engine) unlisted(first uint32, dense bool) bool {
	return dense && first > e.packs.Load().last && e.isSmall()
}

// setBarrier sets the barrier, nil for none. The index must account for the barrier's collection.
func (e *Engine) setBarrier(b *collect.Barrier) {
	e.collecting.Barrier.Store(b)
	e.hide(b)
}

// hide hides dead records that packs still contain; nil shows everything.
func (e *Engine) hide(dead *collect.Barrier) {
	e.setPacks(e.packs.Load().last, e.packs.Load().number, dead)
}

// setPacks replaces the packs below the index. The write lock is held, or no other goroutine has the store.
func (e *Engine) setPacks(last uint32, number uint64, hidden *collect.Barrier) {
	e.packs.Store(&packLayer{
		files: e.journalFiles, absent: &e.absent,
		last: last, number: number, hidden: hidden, places: recent.NewShared[contentStart, foundLocation](contentStart.place),
	})
}
