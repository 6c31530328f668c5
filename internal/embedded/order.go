package embedded

import (
	"crypto/sha256"
	"encoding/binary"
	"iter"
	"slices"
	"time"

	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Threads are listed by an index table that has each thread once for all threads, once for
// its user and once for each of the first values of its metadata: by the filter, and then by
// the time of the last update. These entries change with every message, so commits do not
// make them. A fold derives them from the records of threads and the times of last messages
// that it brings, and a listing adds the threads that changed since.
//
// A key is the table, the filter, the time and the thread. An entry whose thread has another
// time now says nothing.

const (
	filterSize   = 6
	timeSize     = 6
	orderKeySize = 1 + filterSize + timeSize + 16
	// indexedScalars is how many values of metadata have entries. A thread with more is in
	// the list of filterMore, too.
	indexedScalars = 16
	// textSize is how many bytes of a source id or title are in a key.
	textSize = 24
)

// orderFilter is what threads are listed by.
type orderFilter [filterSize]byte

var (
	filterAll  = orderFilter{}
	filterMore = orderFilter{1}
)

// filterOf returns the filter of a user or a value of metadata. Two may have the same, so
// the thread is asked.
func filterOf(kind byte, key, value string) (f orderFilter) {
	b := binary.BigEndian.AppendUint64([]byte{kind}, uint64(len(key)))
	sum := sha256.Sum256(append(append(b, key...), value...))
	copy(f[:], sum[:])
	f[0] |= 0x80
	return f
}

func userFilter(user string) orderFilter { return filterOf('u', "", user) }

func scalarFilter(s backend.Scalar) orderFilter { return filterOf('m', s.Key, s.Form) }

func appendOrderTime(k []byte, at int64) []byte {
	const half = 1 << (8*timeSize - 1)
	at = min(max(at, -half), half-1) + half
	return append(k, binary.BigEndian.AppendUint64(nil, uint64(at))[8-timeSize:]...)
}

// orderKey returns the key of a place in the order of a filter.
func orderKey(f orderFilter, at backend.PageToken) []byte {
	k := append(append(make([]byte, 0, orderKeySize+1), tableOrder), f[:]...)
	return append(appendOrderTime(k, at.Updated), at.Thread[:]...)
}

// filtersOf returns the filters by which a thread is listed.
func filtersOf(t *structure.Thread) []orderFilter {
	all := []orderFilter{filterAll}
	if t.UserID != "" {
		all = append(all, userFilter(t.UserID))
	}
	scalars := backend.Scalars(t.Metadata)
	if len(scalars) > indexedScalars {
		all, scalars = append(all, filterMore), scalars[:indexedScalars]
	}
	for _, s := range scalars {
		all = append(all, scalarFilter(s))
	}
	return all
}

// orderKeys returns the entries of a thread.
func orderKeys(l backend.ThreadListing) (keys [][]byte) {
	for _, f := range filtersOf(l.Thread) {
		keys = append(keys, orderKey(f, l.Token()))
	}
	return keys
}

// deriveOrder derives the entries of the threads that a fold brings.
func deriveOrder(f *index.Folding) error {
	last := structure.ThreadID{}
	for _, id := range changedThreads(f.Changed) {
		if id == last {
			continue
		}
		last = id
		was, wasThere, err := listingOf(getter(f.Before), id)
		if err != nil {
			return err
		}
		is, isThere, err := listingOf(getter(f.After), id)
		if err != nil {
			return err
		}
		if wasThere {
			for _, k := range orderKeys(was) {
				f.Put(k, nil)
			}
		}
		if isThere {
			for _, k := range orderKeys(is) {
				f.Put(k, present)
			}
		}
	}
	return nil
}

// getter is a kv that is a function.
type getter func(key []byte) ([]byte, bool, error)

// Get implements kv.
func (g getter) Get(key []byte) ([]byte, bool, error) { return g(key) }

// listingOf returns a thread with the time of its last message, if it is there.
func listingOf(state kv, id structure.ThreadID) (l backend.ThreadListing, ok bool, err error) {
	v, ok, err := state.Get(key(tableThread, id[:]))
	if err != nil || !ok {
		return l, false, err
	}
	if l.Thread, err = decodeRecord[*structure.Thread](structure.KindThread, v, id.String()); err != nil {
		return l, false, err
	}
	at, said, err := lastMessage(state, l.Home())
	if said {
		l.LastMessage = time.UnixMilli(at).UTC()
	}
	return l, err == nil, err
}

// lastMessage returns the time of the last message of a home, if it has one.
func lastMessage(state kv, home structure.Home) (at int64, ok bool, err error) {
	v, ok, err := state.Get(appendMessageKey(nil, home))
	if err != nil || !ok {
		return 0, false, err
	}
	at, n := binary.Varint(v)
	if n != len(v) || n == 0 {
		return 0, false, errValue
	}
	return at, true, nil
}

func appendMessageKey(k []byte, home structure.Home) []byte {
	k = append(append(k, tableMessage), home.Thread[:]...)
	return binary.BigEndian.AppendUint64(k, home.Incarnation)
}

// homeOfMessage returns the home that the key of a last message is about.
func homeOfMessage(k []byte) (home structure.Home) {
	home.Incarnation = be64value(k[1+copy(home.Thread[:], k[1:]):])
	return home
}

// changedThreads returns the threads whose entries may have changed, given what does, in
// order and some of them twice.
func changedThreads(changed func(prefix []byte) iter.Seq[index.Entry]) (ids []structure.ThreadID) {
	for _, table := range []byte{tableThread, tableMessage} {
		for e := range changed([]byte{table}) {
			ids = append(ids, structure.ThreadID(e.Key[1:1+len(structure.ThreadID{})]))
		}
	}
	slices.SortFunc(ids, structure.ThreadID.Compare)
	return ids
}

// sourceTextKey is where a thread is found by how its source id begins.
func sourceTextKey(t *structure.Thread) []byte {
	if t == nil {
		return nil
	}
	return textKey(tableFrom, t.SourceID, t.ID)
}

// titleTextKey is where a thread is found by how its title begins.
func titleTextKey(t *structure.Thread) []byte {
	if t == nil {
		return nil
	}
	return textKey(tableTitle, backend.FoldCase(t.Title), t.ID)
}

func textKey(table byte, text string, id structure.ThreadID) []byte {
	if text == "" {
		return nil
	}
	return append(textPrefix(table, text), id[:]...)
}

// textPrefix begins the keys of the threads whose text begins with some other.
func textPrefix(table byte, text string) []byte {
	return append(append(make([]byte, 0, 1+textSize+16), table), text[:min(len(text), textSize)]...)
}

// orderPlace returns the place of a key.
func orderPlace(k []byte) (at backend.PageToken) {
	k = k[1+filterSize:]
	var millis [8]byte
	copy(millis[8-timeSize:], k)
	at.Updated = int64(binary.BigEndian.Uint64(millis[:])) - 1<<(8*timeSize-1)
	copy(at.Thread[:], k[timeSize:])
	return at
}
