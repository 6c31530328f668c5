package postgres

import (
	"bytes"
	"slices"

	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/internal/index"
)

// fetched has entries of the server, as they are in one state.
type fetched struct {
	recent, older entrySet
	size          int                    // of recent, in bytes
	lasts         map[string]index.Entry // the last spans of runs, by their prefix; without a key for none
}

// entrySet has entries that were fetched by their keys, and by ranges.
type entrySet struct {
	values map[string][]byte // nil for none
	ranges []fetchedRange
}

// fetchedRange has all entries of a range.
type fetchedRange struct {
	read.Range
	entries []index.Entry
}

func newFetched() fetched {
	return fetched{recent: entrySet{values: make(map[string][]byte)}, lasts: make(map[string]index.Entry)}
}

// add adds entries that were fetched before.
func (f *fetched) add(before entrySet) {
	for key, value := range before.values {
		if _, known := f.recent.values[key]; !known {
			f.recent.values[key] = value
		}
	}
	f.recent.ranges = append(f.recent.ranges, before.ranges...)
}

// value returns the value of a key that was fetched by itself. A nil value means that there is no entry.
func (f *fetched) value(key []byte) (value []byte, known bool) {
	if value, known = f.recent.values[string(key)]; !known {
		value, known = f.older.values[string(key)]
	}
	return value, known
}

// valueInRange returns the value of a key from a range that was fetched.
func (f *fetched) valueInRange(key []byte) (value []byte, known bool) {
	if f.afterLast(key) {
		return nil, true
	}
	r := f.covering(key, append(bytes.Clone(key), 0))
	if r == nil {
		return nil, false
	}
	if i := seek(r.entries, key); i < len(r.entries) && bytes.Equal(r.entries[i].Key, key) {
		return r.entries[i].Value, true
	}
	return nil, true
}

// covering returns a range that has all entries with from <= key < to; a nil to has no end.
func (f *fetched) covering(from, to []byte) *fetchedRange {
	for _, ranges := range [][]fetchedRange{f.recent.ranges, f.older.ranges} {
		for i := range ranges {
			r := &ranges[i]
			if bytes.Compare(r.From, from) <= 0 && (r.To == nil || to != nil && bytes.Compare(to, r.To) <= 0) {
				return r
			}
		}
	}
	return nil
}

// last returns the last entry of a range, without a key if there is none.
func (f *fetched) last(r read.Range) (last index.Entry, known bool) {
	if e, known := f.lasts[string(r.From)]; known && ofRun(r) {
		return e, true
	}
	in := f.covering(r.From, r.To)
	if in == nil {
		return index.Entry{}, false
	}
	end := len(in.entries)
	if r.To != nil {
		end = seek(in.entries, r.To)
	}
	if end == 0 || bytes.Compare(in.entries[end-1].Key, r.From) < 0 {
		return index.Entry{}, true
	}
	return in.entries[end-1], true
}

// afterLast reports whether a key is after the last span of its run, as that was fetched.
func (f *fetched) afterLast(key []byte) bool {
	if !isSpan(key) {
		return false
	}
	last, known := f.lasts[string(key[:spanPrefix])]
	return known && bytes.Compare(key, last.Key) > 0
}

// keep keeps the value of a key.
func (f *fetched) keep(key, value []byte) {
	f.recent.values[string(key)] = value
	f.size += len(key) + len(value) + overhead
}

// keepRange keeps all entries of a range.
func (f *fetched) keepRange(r read.Range, entries []index.Entry) {
	f.recent.ranges = append(f.recent.ranges, fetchedRange{r, entries})
	for _, e := range entries {
		f.size += len(e.Key) + len(e.Value) + overhead
	}
}

// mostKept limits the recent entries, in bytes. Tests make it smaller.
var mostKept = 4 << 20

// age drops the older entries when the recent ones take much memory; these become the older ones.
func (f *fetched) age() {
	if f.size <= mostKept {
		return
	}
	f.older = f.recent
	f.recent, f.size = entrySet{values: make(map[string][]byte)}, 0
	clear(f.lasts)
}

// keepWritten takes account of a row that was written, given its entries in order: runs may have new last spans, and ranges
// with changed entries are forgotten.
func (f *fetched) keepWritten(entries []index.Entry) {
	for _, e := range entries {
		if !isSpan(e.Key) {
			continue
		}
		if run := string(e.Key[:spanPrefix]); bytes.Compare(f.lasts[run].Key, e.Key) < 0 {
			f.lasts[run] = e
		}
	}
	f.recent.ranges = slices.DeleteFunc(f.recent.ranges, func(r fetchedRange) bool {
		i := seek(entries, r.From)
		return i < len(entries) && (r.To == nil || bytes.Compare(entries[i].Key, r.To) < 0)
	})
}
