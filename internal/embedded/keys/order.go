package keys

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Threads are listed by a table that has each thread once for all threads, once for its user
// and once for each of the first values of its metadata: by the filter, and then by the time of
// the last update. These entries change with every message, so commits do not write them (see
// read.Derive). A key is the table, the filter, the time and the thread. An entry whose thread
// has another time now means nothing.

const (
	filterSize = 6
	timeSize   = 6
	// OrderKeySize is the size of the keys of TableOrder.
	OrderKeySize = 1 + filterSize + timeSize + 16
	// indexedScalars is how many values of metadata have entries. A thread with more is in
	// the list of FilterMore, too.
	indexedScalars = 16
	// textSize is how many bytes of a source id or title are in a key.
	textSize = 24
)

// OrderFilter is what threads are listed by.
type OrderFilter [filterSize]byte

var (
	// FilterAll is the filter of all threads, and FilterMore that of threads with more values of
	// metadata than are listed.
	FilterAll  = OrderFilter{}
	FilterMore = OrderFilter{1}
)

// filterOf returns the filter of a user or a value of metadata. Two may have the same, so
// the thread is asked.
func filterOf(kind byte, key, value string) (f OrderFilter) {
	b := binary.BigEndian.AppendUint64([]byte{kind}, uint64(len(key)))
	sum := sha256.Sum256(append(append(b, key...), value...))
	copy(f[:], sum[:])
	f[0] |= 0x80
	return f
}

// UserFilter is the filter of the threads of a user.
func UserFilter(user string) OrderFilter { return filterOf('u', "", user) }

// ScalarFilter is the filter of the threads that have a value in their metadata.
func ScalarFilter(s backend.Scalar) OrderFilter { return filterOf('m', s.Key, s.Form) }

func appendOrderTime(k []byte, at int64) []byte {
	const half = 1 << (8*timeSize - 1)
	at = min(max(at, -half), half-1) + half
	return append(k, binary.BigEndian.AppendUint64(nil, uint64(at))[8-timeSize:]...)
}

// Order returns the key of a place in the order of a filter.
func Order(f OrderFilter, at backend.PageToken) []byte {
	k := append(append(make([]byte, 0, OrderKeySize+1), TableOrder), f[:]...)
	return append(appendOrderTime(k, at.Updated), at.Thread[:]...)
}

// filtersOf returns the filters by which a thread is listed.
func filtersOf(t *structure.Thread) []OrderFilter {
	all := []OrderFilter{FilterAll}
	if t.UserID != "" {
		all = append(all, UserFilter(t.UserID))
	}
	scalars := backend.Scalars(t.Metadata)
	if len(scalars) > indexedScalars {
		all, scalars = append(all, FilterMore), scalars[:indexedScalars]
	}
	for _, s := range scalars {
		all = append(all, ScalarFilter(s))
	}
	return all
}

// Orders returns the entries of a thread.
func Orders(l backend.ThreadListing) (keys [][]byte) {
	for _, f := range filtersOf(l.Thread) {
		keys = append(keys, Order(f, l.Token()))
	}
	return keys
}

// AppendMessage appends the key of the last message of a home.
func AppendMessage(k []byte, home structure.Home) []byte {
	k = append(append(k, TableMessage), home.Thread[:]...)
	return binary.BigEndian.AppendUint64(k, home.Incarnation)
}

// HomeOfMessage returns the home that the key of a last message is about.
func HomeOfMessage(k []byte) (home structure.Home) {
	home.Incarnation = ReadUint64(k[1+copy(home.Thread[:], k[1:]):])
	return home
}

// SourceText is where a thread is found by how its source id begins.
func SourceText(t *structure.Thread) []byte {
	if t == nil {
		return nil
	}
	return textKey(TableFrom, t.SourceID, t.ID)
}

// TitleText is where a thread is found by how its title begins.
func TitleText(t *structure.Thread) []byte {
	if t == nil {
		return nil
	}
	return textKey(TableTitle, backend.FoldCase(t.Title), t.ID)
}

func textKey(table byte, text string, id structure.ThreadID) []byte {
	if text == "" {
		return nil
	}
	return append(TextPrefix(table, text), id[:]...)
}

// TextPrefix begins the keys of the threads whose text begins with some other.
func TextPrefix(table byte, text string) []byte {
	return append(append(make([]byte, 0, 1+textSize+16), table), text[:min(len(text), textSize)]...)
}

// OrderPlace returns the place of a key.
func OrderPlace(k []byte) (at backend.PageToken) {
	k = k[1+filterSize:]
	var millis [8]byte
	copy(millis[8-timeSize:], k)
	at.Updated = int64(binary.BigEndian.Uint64(millis[:])) - 1<<(8*timeSize-1)
	copy(at.Thread[:], k[timeSize:])
	return at
}
