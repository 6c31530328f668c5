package keys

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// The table of listings has an entry for each thread under several filters: of all threads, of its user, and of each
// of its first metadata values. A key is the table, the filter, the time of the last update and the thread. These
// entries change with every message, so they are written by folds and not by commits (see read.Derive). An entry is
// stale if the time of the thread has changed since.

const (
	filterSize = 4
	timeSize   = 6
	// OrderKeySize is the size of the keys of TableThreadByTime.
	OrderKeySize = 1 + filterSize + timeSize + 16
	// indexedScalars limits the metadata values with entries. A thread with more values also has
	// an entry under FilterMore.
	indexedScalars = 16
	// textSize is the number of bytes of a source id or title in a key. A shorter text is followed by zeros.
	textSize = 16
)

// OrderFilter is a filter of a listing.
type OrderFilter [filterSize]byte

var (
	// FilterAll is the filter of all threads. FilterMore is that of threads that have more metadata values than
	// indexedScalars.
	FilterAll  = OrderFilter{}
	FilterMore = OrderFilter{1}
)

// filterOf returns the filter of a user or a metadata value. Filters may collide, so readers
// check the thread.
func filterOf(kind byte, key, value string) (f OrderFilter) {
	b := binary.BigEndian.AppendUint64([]byte{kind}, uint64(len(key)))
	sum := sha256.Sum256(append(append(b, key...), value...))
	copy(f[:], sum[:])
	f[0] |= 0x80
	return f
}

// UserFilter is the filter of the threads of a user.
func UserFilter(user string) OrderFilter { return filterOf('u', "", user) }

// ScalarFilter is the filter of the threads with a metadata value.
func ScalarFilter(s backend.Scalar) OrderFilter { return filterOf('m', s.Key, s.Form) }

func appendOrderTime(k []byte, at int64) []byte {
	const half = 1 << (8*timeSize - 1)
	at = min(max(at, -half), half-1) + half
	return append(k, binary.BigEndian.AppendUint64(nil, uint64(at))[8-timeSize:]...)
}

// Order returns the key of a position in the order of a filter.
func Order(f OrderFilter, at backend.PageToken) []byte {
	k := append(append(make([]byte, 0, OrderKeySize+1), TableThreadByTime), f[:]...)
	return append(appendOrderTime(k, at.Updated), at.Thread[:]...)
}

// filtersOf returns the filters of a thread's entries.
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

// Orders returns the keys of a thread's entries.
func Orders(l backend.ThreadListing) (keys [][]byte) {
	for _, f := range filtersOf(l.Thread) {
		keys = append(keys, Order(f, l.Token()))
	}
	return keys
}

// AppendMessage appends the key of the last message of a home.
func AppendMessage(k []byte, home structure.Home) []byte {
	k = append(append(k, TableLastMessage), home.Thread[:]...)
	return binary.BigEndian.AppendUint64(k, home.Incarnation)
}

// HomeOfMessage returns the home in a key that AppendMessage made.
func HomeOfMessage(k []byte) (home structure.Home) {
	home.Incarnation = ReadUint64(k[1+copy(home.Thread[:], k[1:]):])
	return home
}

// SourceText is the key that finds a thread by a prefix of its source id.
func SourceText(t *structure.Thread) []byte {
	if t == nil {
		return nil
	}
	return textKey(TableThreadBySource, t.SourceID, t.ID)
}

// TitleText is the key that finds a thread by a prefix of its title.
func TitleText(t *structure.Thread) []byte {
	if t == nil {
		return nil
	}
	return textKey(TableThreadByTitle, backend.FoldCase(t.Title), t.ID)
}

func textKey(table byte, text string, id structure.ThreadID) []byte {
	if text == "" {
		return nil
	}
	k := append(TextPrefix(table, text), make([]byte, textSize)...) // ends with zeros
	return append(k[:1+textSize], id[:]...)
}

// TextPrefix is the prefix of the keys of threads whose text starts with text.
func TextPrefix(table byte, text string) []byte {
	return append(append(make([]byte, 0, 1+2*textSize), table), text[:min(len(text), textSize)]...)
}

// OrderPosition returns the position in a key.
func OrderPosition(k []byte) (at backend.PageToken) {
	k = k[1+filterSize:]
	var millis [8]byte
	copy(millis[8-timeSize:], k)
	at.Updated = int64(binary.BigEndian.Uint64(millis[:])) - 1<<(8*timeSize-1)
	copy(at.Thread[:], k[timeSize:])
	return at
}
