package postgres

import (
	"bytes"
	"iter"

	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/memtable"
	"github.com/lineage-store/lineage/structure"
)

// additions are what the commits of a batch add to a state. A nil pointer has none.
type additions struct {
	entries *memtable.Table                 // without a value it is a deletion
	commits map[uint64][]embedded.Sequenced // by the first number of their row
	// absent, when not nil, collects keys that are assumed to have no entries on the server.
	absent map[string]struct{}
}

func newAdditions() *additions {
	return &additions{entries: memtable.New(), commits: make(map[uint64][]embedded.Sequenced)}
}

// empty reports whether there are no entries.
func (a *additions) empty() bool { return a == nil || a.entries.Len() == 0 }

// get returns the value of a key; ok with a nil value is a deletion.
func (a *additions) get(key []byte) (value []byte, ok bool) {
	if a == nil {
		return nil, false
	}
	return a.entries.Latest().Get(key)
}

// last returns the last entry of a range; without a value it is a deletion.
func (a *additions) last(from, to []byte) (last index.Entry, ok bool) {
	if a.empty() {
		return last, false
	}
	k, v, ok := a.entries.Latest().Last(to)
	return index.Entry{Key: k, Value: v}, ok && bytes.Compare(k, from) >= 0
}

// all yields the entries in order.
func (a *additions) all() iter.Seq[index.Entry] {
	return func(yield func(index.Entry) bool) {
		for at := a.entries.Latest().Seek(nil); at.Valid(); at.Next() {
			if !yield(index.Entry{Key: at.Key(), Value: at.Value()}) {
				return
			}
		}
	}
}

// commitsOf returns the commits of a row.
func (a *additions) commitsOf(first uint64) (commits []embedded.Sequenced, ok bool) {
	if a == nil {
		return nil, false
	}
	commits, ok = a.commits[first]
	return commits, ok
}

// contexts returns the contexts that the batch changed.
func (a *additions) contexts() (ids []structure.ContextID) {
	for _, table := range []byte{keys.TableContext, keys.TableTip} {
		for at := a.entries.Latest().Seek([]byte{table}); at.Valid() && at.Key()[0] == table; at.Next() {
			ids = append(ids, structure.ContextID(at.Key()[1:]))
		}
	}
	return ids
}

// assumable reports whether a key is in a table for which a lookup usually finds nothing, because commits bring new ids.
func assumable(key []byte) bool {
	switch key[0] {
	case keys.TableBlock, keys.TableChunk, keys.TableSpan, keys.TableRun, keys.TableCutRun, keys.TableContext, keys.TableTip, keys.TableRemnant, keys.TableSpanSet, keys.TableThread, keys.TableErased:
		return true
	}
	return false
}

// assumeAbsent assumes that a key has no entry on the server, if that is likely and allowed, and reports whether it does.
// Writing the row checks the assumptions.
func (a *additions) assumeAbsent(key []byte) bool {
	if a == nil || a.absent == nil || !assumable(key) {
		return false
	}
	a.absent[string(key)] = struct{}{}
	return true
}
