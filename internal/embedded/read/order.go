package read

import (
	"encoding/binary"
	"iter"
	"slices"
	"time"

	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Derive updates the derived entries of threads that change in a fold.
func Derive(f *index.Folding) error {
	return DeriveOrder(f.Changed, GetterFunc(f.Before), GetterFunc(f.After), f.Put)
}

// DeriveOrder is Derive with the parts of a fold: the entries that it changes, the states before and after it, and a function
// that sets an entry, or deletes it if the value is nil. The last call for a key counts.
func DeriveOrder(changed func(prefix []byte) iter.Seq[index.Entry], before, after Getter, put func(key, value []byte)) error {
	last := structure.ThreadID{}
	for _, id := range ChangedThreads(changed) {
		if id == last {
			continue
		}
		last = id
		was, wasThere, err := Listing(before, id)
		if err != nil {
			return err
		}
		now, exists, err := Listing(after, id)
		if err != nil {
			return err
		}
		if wasThere {
			for _, k := range keys.Orders(was) {
				put(k, nil)
			}
		}
		if exists {
			for _, k := range keys.Orders(now) {
				put(k, keys.Present)
			}
		}
	}
	return nil
}

// GetterFunc is a function that implements Getter.
type GetterFunc func(key []byte) ([]byte, bool, error)

// Get implements Getter.
func (g GetterFunc) Get(key []byte) ([]byte, bool, error) { return g(key) }

// Listing returns a thread with the time of its last message, if the thread exists.
func Listing(state Getter, id structure.ThreadID) (l backend.ThreadListing, ok bool, err error) {
	v, ok, err := state.Get(keys.Of(keys.TableThread, id[:]))
	if err != nil || !ok {
		return l, false, err
	}
	if l.Thread, err = keys.Record[*structure.Thread](structure.KindThread, v, id.String()); err != nil {
		return l, false, err
	}
	at, known, err := LastMessage(state, l.Home())
	if known {
		l.LastMessage = time.UnixMilli(at).UTC()
	}
	return l, err == nil, err
}

// LastMessage returns the time of the last message of a home, if any.
func LastMessage(state Getter, home structure.Home) (at int64, ok bool, err error) {
	v, ok, err := state.Get(keys.AppendMessage(nil, home))
	if err != nil || !ok {
		return 0, false, err
	}
	at, n := binary.Varint(v)
	if n != len(v) || n == 0 {
		return 0, false, keys.ErrValue
	}
	return at, true, nil
}

// ChangedThreads returns the threads whose derived entries may have changed, given the
// changed entries. They are sorted and may repeat.
func ChangedThreads(changed func(prefix []byte) iter.Seq[index.Entry]) (ids []structure.ThreadID) {
	for _, table := range []byte{keys.TableThread, keys.TableLastMessage} {
		for e := range changed([]byte{table}) {
			ids = append(ids, structure.ThreadID(e.Key[1:1+len(structure.ThreadID{})]))
		}
	}
	slices.SortFunc(ids, structure.ThreadID.Compare)
	return ids
}
