package postgres

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/lineage/backend"
)

// Some entries are soon replaced by the next commits, such as tips, and spans are stored in groups. A batch writes these
// entries as one value beside its row of the log. They are then unfolded, until a later batch folds them: it writes the latest
// version of each key, or group. Readers fetch what is unfolded with the state, and look there first.

// mostUnfolded limits what is unfolded, in bytes, and mostChanges the number of rows that brought it. Tests change them.
var (
	mostUnfolded = 64 << 10
	mostChanges  = 512
)

// laterKeys has the size of keys, for the tables whose entries are unfolded at first.
var laterKeys = [256]int{keys.TableTip: 17, keys.TableLastMessage: 25, keys.TableThread: 17, keys.TableSpan: spanKey}

// foldsLater reports whether the entries of a key are unfolded at first.
func foldsLater(key []byte) bool { return laterKeys[key[0]] > 0 }

// unfolded are the unfolded entries of a state. It does not change; nil has none.
type unfolded struct {
	entries []index.Entry // by key; without a value it is a deletion
	size    int           // as they are stored
	changes int           // the number of rows of the log that brought them
}

// between returns the entries with from <= key < to; a nil to has no end.
func (u *unfolded) between(from, to []byte) []index.Entry {
	if u == nil {
		return nil
	}
	end := len(u.entries)
	if to != nil {
		end = seek(u.entries, to)
	}
	return u.entries[min(seek(u.entries, from), end):end]
}

// get returns the value of a key; ok with a nil value is a deletion.
func (u *unfolded) get(key []byte) (value []byte, ok bool) {
	if u == nil {
		return nil, false
	}
	if i := seek(u.entries, key); i < len(u.entries) && bytes.Equal(u.entries[i].Key, key) {
		return u.entries[i].Value, true
	}
	return nil, false
}

// with returns the unfolded entries after later ones are added. These are sorted. size is the number of bytes in which they are
// stored, and changes the number of their rows.
func (u *unfolded) with(later []index.Entry, size, changes int) *unfolded {
	if len(later) == 0 {
		return u
	}
	var earlier []index.Entry
	if u != nil {
		earlier, size, changes = u.entries, size+u.size, changes+u.changes
	}
	all := make([]index.Entry, 0, len(earlier)+len(later))
	for _, e := range later {
		i := seek(earlier, e.Key)
		all = append(all, earlier[:i]...)
		if earlier = earlier[i:]; len(earlier) > 0 && bytes.Equal(earlier[0].Key, e.Key) {
			earlier = earlier[1:]
		}
		all = append(all, e)
	}
	return &unfolded{append(all, earlier...), size, changes}
}

// latestOf sorts entries of rows, and keeps the last one of each key.
func latestOf(all []index.Entry) []index.Entry {
	slices.SortStableFunc(all, func(a, b index.Entry) int { return bytes.Compare(a.Key, b.Key) })
	n := 0
	for i, e := range all {
		if i+1 == len(all) || !bytes.Equal(e.Key, all[i+1].Key) {
			all[n] = e
			n++
		}
	}
	return all[:n]
}

// The changes of a row are
//
//	the version, 1 byte
//	for each entry, by key: the length of its key, a varint; the key; 0 for a deletion, or the length of its value and 1,
//	a varint; and the value
const changesVersion = 1

// encodeChanges encodes sorted entries, nil for none.
func encodeChanges(all []index.Entry) []byte {
	if len(all) == 0 {
		return nil
	}
	b := []byte{changesVersion}
	for _, e := range all {
		b = append(binary.AppendUvarint(b, uint64(len(e.Key))), e.Key...)
		if e.Value == nil {
			b = append(b, 0)
			continue
		}
		b = append(binary.AppendUvarint(b, uint64(len(e.Value))+1), e.Value...)
	}
	return b
}

var errChanges = &backend.CorruptError{File: "lineage_former", What: "the changes of a row"}

// unfoldable reports whether a change can be folded: a span needs a place.
func unfoldable(e index.Entry) bool {
	if !isSpan(e.Key) {
		return true
	}
	_, err := readSpan(e.Value)
	return err == nil
}

// decodeChanges is the inverse of encodeChanges. The entries share the memory.
func decodeChanges(b []byte) ([]index.Entry, error) {
	if len(b) == 0 {
		return nil, nil
	}
	if b[0] > changesVersion {
		return nil, fmt.Errorf("version %d of the changes of a row: %w", b[0], backend.ErrNewerFormat)
	}
	var all []index.Entry
	v := keys.ReadVarints(b[1:])
	take := func(size uint64) (some []byte) {
		if v.Bad = v.Bad || size > uint64(len(v.Rest)); v.Bad {
			return nil
		}
		some, v.Rest = v.Rest[:size:size], v.Rest[size:]
		return some
	}
	for b[0] == changesVersion && len(v.Rest) > 0 && !v.Bad {
		e := index.Entry{Key: take(v.Next())}
		if size := v.Next(); size > 0 {
			e.Value = present(take(size - 1))
		}
		if v.Bad = v.Bad || len(e.Key) == 0 || laterKeys[e.Key[0]] != len(e.Key) || !unfoldable(e) || len(all) > 0 && bytes.Compare(all[len(all)-1].Key, e.Key) >= 0; !v.Bad {
			all = append(all, e)
		}
	}
	if v.Bad || len(all) == 0 {
		return nil, errChanges
	}
	return all, nil
}

func (u *unfolded) bytes() int {
	if u == nil {
		return 0
	}
	return u.size
}

func (u *unfolded) rows() int {
	if u == nil {
		return 0
	}
	return u.changes
}

// spansOf returns the spans of a run that are unfolded. The last one is the last of the run.
func (u *unfolded) spansOf(key []byte) []index.Entry {
	prefix := key[:spanPrefix]
	return u.between(prefix, keys.PrefixEnd(prefix))
}

// decodeAllChanges returns the latest entries of the changes of several rows, which have the given sizes.
func decodeAllChanges(changes []byte, sizes []int32) ([]index.Entry, error) {
	var all []index.Entry
	for _, size := range sizes {
		entries, err := decodeChanges(changes[:size:size])
		if err == nil && len(entries) == 0 {
			err = errChanges
		}
		if err != nil {
			return nil, err
		}
		all, changes = append(all, entries...), changes[size:]
	}
	return latestOf(all), nil
}
