package postgres

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"sort"

	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/lineage/backend"
)

// An index of the server accepts keys of up to 2.7 kB, but a name can have 4 kB. For a longer key the table stores the start and a
// hash, and the value begins with the whole key. The table orders such keys by their starts only.

// longKey is the size of the start of a key that is stored; longer keys are long.
const longKey = 2000

func isLong(key []byte) bool { return len(key) > longKey }

// storedKey returns what the table has of a key.
func storedKey(key []byte) []byte {
	if isSpan(key) {
		return groupKey(key)
	}
	if !isLong(key) {
		return key
	}
	sum := sha256.Sum256(key)
	return append(bytes.Clone(key[:longKey]), sum[:]...)
}

// storedKeys returns what the table has of keys, each once.
func storedKeys(ks [][]byte) [][]byte {
	all := make([][]byte, len(ks))
	for i, k := range ks {
		all[i] = storedKey(k)
	}
	slices.SortFunc(all, bytes.Compare)
	return slices.CompactFunc(all, bytes.Equal)
}

// stored returns key and value of an entry as the table has them.
func stored(e index.Entry) (key, value []byte) {
	if !isLong(e.Key) || e.Value == nil {
		return storedKey(e.Key), e.Value
	}
	value = append(binary.AppendUvarint(nil, uint64(len(e.Key))), e.Key...)
	return storedKey(e.Key), append(value, e.Value...)
}

// eachRestored passes what a row of the table has, by key.
func eachRestored(key, value []byte, take func(index.Entry)) error {
	if len(key) == 0 || key[0] != keys.TableSpan {
		e, err := restored(key, value)
		if err == nil {
			take(e)
		}
		return err
	}
	all, err := decodeGroup(key, value)
	for _, e := range all {
		take(e)
	}
	return err
}

// restored is the inverse of stored, for an entry with a value that is not a group.
func restored(key, value []byte) (index.Entry, error) {
	if !isLong(key) {
		return index.Entry{Key: key, Value: present(value)}, nil
	}
	size, n := binary.Uvarint(value)
	if n <= 0 || size > uint64(len(value)-n) || !bytes.Equal(storedKey(value[n:n+int(size)]), key) {
		return index.Entry{}, &backend.CorruptError{File: "lineage_entry", What: "a long key"}
	}
	return index.Entry{Key: value[n : n+int(size) : n+int(size)], Value: present(value[n+int(size):])}, nil
}

// storedBounds returns a range of the table that has all entries of a range. It may have others.
func storedBounds(from, to []byte) (low, high []byte) {
	low, high = from, to
	switch {
	case isSpan(from):
		low = groupKey(from)
	case isLong(from):
		low = from[:longKey]
	}
	switch {
	case to == nil:
		high = []byte{0xff}
	case isLong(to):
		high = keys.PrefixEnd(to[:longKey])
	}
	return low, high
}

// inRange sorts entries from a range of the table, and keeps those of a range.
func inRange(all []index.Entry, from, to []byte) []index.Entry {
	if !isLong(from) && !isLong(to) && !slices.ContainsFunc(all, func(e index.Entry) bool { return isLong(e.Key) || e.Key[0] == keys.TableSpan }) {
		return all
	}
	slices.SortFunc(all, func(a, b index.Entry) int { return bytes.Compare(a.Key, b.Key) })
	return slices.DeleteFunc(all, func(e index.Entry) bool {
		return bytes.Compare(e.Key, from) < 0 || to != nil && bytes.Compare(e.Key, to) >= 0
	})
}

// seek returns the index of the first entry at or after a key. The entries are sorted.
func seek(entries []index.Entry, key []byte) int {
	return sort.Search(len(entries), func(i int) bool { return bytes.Compare(entries[i].Key, key) >= 0 })
}

// present returns a value that is not nil.
func present(value []byte) []byte {
	if value == nil {
		return []byte{}
	}
	return value
}
