package postgres

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"slices"

	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
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
	var was []index.Entry
	if u != nil {
		was, size, changes = u.entries, size+u.size, changes+u.changes
	}
	all := make([]index.Entry, 0, len(was)+len(later))
	for _, e := range later {
		i := seek(was, e.Key)
		all = append(all, was[:i]...)
		if was = was[i:]; len(was) > 0 && bytes.Equal(was[0].Key, e.Key) {
			was = was[1:]
		}
		all = append(all, e)
	}
	return &unfolded{append(all, was...), size, changes}
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

// output is what the commits of a batch write beside the log.
type output struct {
	entries  []version // by key
	changes  []byte    // what becomes unfolded; nil if the batch folds
	folded   uint64    // the last commit that folded, after the batch
	unfolded *unfolded // what is unfolded, after the batch
}

// output returns what the judged commits write. number is that of the last one. If fold is set, or too much would be
// unfolded, it folds.
func (j *judging) output(number uint64, fold bool) (m output, err error) {
	var later []index.Entry
	for e := range j.table.added.all() {
		if !foldsLater(e.Key) {
			m.add(j.table, e)
		} else if v, known := j.table.look(e.Key); e.Value != nil || !known || v != nil {
			later = append(later, e)
		}
	}
	was := j.table.state.unfolded
	if !fold {
		if later, err = m.completeGroups(later); err != nil {
			return m, err
		}
	}
	changes := encodeChanges(later)
	if !fold && was.bytes()+len(changes) <= mostUnfolded && (changes == nil || was.rows() < mostChanges) {
		slices.SortFunc(m.entries, func(a, b version) int { return bytes.Compare(a.Key, b.Key) })
		later, err = decodeChanges(changes) // the memory of the others is that of the batch
		m.changes, m.folded, m.unfolded = changes, j.table.state.folded, was.with(later, len(changes), 1)
		return m, err
	}
	m.folded = number
	all := was.with(later, 0, 0)
	spans := all.between(keys.Of(keys.TableSpan), keys.Of(keys.TableSpan+1))
	if err := m.fold(j.table, spans); err != nil {
		return m, err
	}
	for _, e := range all.between(nil, nil) {
		if !isSpan(e.Key) {
			m.add(j.table, e)
		}
	}
	orders, err := j.table.orders(all)
	for _, e := range orders {
		m.add(j.table, e)
	}
	slices.SortFunc(m.entries, func(a, b version) int { return bytes.Compare(a.Key, b.Key) })
	return m, err
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

// add adds an entry to what is written, unless it changes nothing.
func (m *output) add(t *table, e index.Entry) {
	was, known := t.lookStored(e.Key)
	v := version{Entry: e}
	if !known || was != nil {
		v.replaces = replaces(e)
	} else if e.Value == nil { // it was added and deleted in between
		return
	}
	m.entries = append(m.entries, v)
}

// orders returns the entries that list threads in order, of the threads that a fold changes.
func (t *table) orders(all *unfolded) ([]index.Entry, error) {
	changed := func(prefix []byte) iter.Seq[index.Entry] {
		return slices.Values(all.between(prefix, keys.PrefixEnd(prefix)))
	}
	before := read.GetterFunc(func(key []byte) ([]byte, bool, error) {
		v, known := t.lookStored(key)
		if !known {
			if err := t.fetchStored(t.ctx, [][]byte{key}); err != nil {
				return nil, false, err
			}
			v, _ = t.lookStored(key)
		}
		return v, v != nil, nil
	})
	after := read.GetterFunc(func(key []byte) ([]byte, bool, error) {
		if v, ok := all.get(key); ok {
			return v, v != nil, nil
		}
		return before(key)
	})
	if err := t.fetchListings(slices.Compact(read.ChangedThreads(changed)), before, after); err != nil {
		return nil, err
	}
	puts := make(map[string][]byte)
	err := read.DeriveOrder(changed, before, after, func(key, value []byte) {
		if was, ok := puts[string(key)]; ok && was == nil && value != nil { // it stays
			delete(puts, string(key))
			return
		}
		puts[string(key)] = value
	})
	orders := make([]index.Entry, 0, len(puts))
	for k, v := range puts {
		orders = append(orders, index.Entry{Key: []byte(k), Value: v})
	}
	return orders, err
}

// fetchListings fetches the stored records of threads, and then the times of their last messages.
func (t *table) fetchListings(threads []structure.ThreadID, states ...read.Getter) error {
	var ks [][]byte
	for _, id := range threads {
		ks = append(ks, keys.Of(keys.TableThread, id[:]))
	}
	if err := t.fetchStored(t.ctx, ks); err != nil {
		return err
	}
	var last [][]byte
	for _, k := range ks {
		for _, state := range states {
			v, ok, err := state.Get(k)
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
			thread, err := keys.Record[*structure.Thread](structure.KindThread, v, "")
			if err != nil {
				return err
			}
			last = append(last, keys.AppendMessage(nil, thread.Home()))
		}
	}
	return t.fetchStored(t.ctx, last)
}

// fetchStored fetches the stored values of keys that are not known. Nothing is assumed of them.
func (t *table) fetchStored(ctx context.Context, ks [][]byte) error {
	var n need
	for _, k := range ks {
		if _, known := t.lookStored(k); !known {
			n.Keys = append(n.Keys, k)
		}
	}
	return t.read(ctx, n)
}
