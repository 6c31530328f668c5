package postgres

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/structure"
)

// newOutput returns what the judged commits of a reader write. number is that of the last one. If fold is set, or too much would
// be unfolded, it folds.
func newOutput(t *stateReader, number uint64, fold bool) (output, error) {
	b := &outputBuilder{reader: t}
	later := b.addFirst()
	if !fold {
		var err error
		if later, err = b.addCompleteGroups(later); err != nil {
			return output{}, err
		}
		was, changes := t.state.unfolded, encodeChanges(later)
		if was.bytes()+len(changes) <= mostUnfolded && (changes == nil || was.rows() < mostChanges) {
			later, err := decodeChanges(changes) // the memory of the others is that of the batch
			return output{entries: b.sorted(), changes: changes, folded: t.state.folded, unfolded: was.with(later, len(changes), 1)}, err
		}
	}
	err := b.fold(t.state.unfolded.with(later, 0, 0))
	return output{entries: b.sorted(), folded: number}, err
}

// outputBuilder makes the output of a batch.
type outputBuilder struct {
	reader  *stateReader
	entries []entryVersion
}

func (b *outputBuilder) sorted() []entryVersion {
	slices.SortFunc(b.entries, func(a, b entryVersion) int { return bytes.Compare(a.Key, b.Key) })
	return b.entries
}

// addFirst adds the entries of the batch that are written at once, and returns those that are folded later.
func (b *outputBuilder) addFirst() (later []index.Entry) {
	for e := range b.reader.added.all() {
		if !foldsLater(e.Key) {
			b.add(e)
		} else if v, known := b.reader.look(e.Key); e.Value != nil || !known || v != nil {
			later = append(later, e)
		}
	}
	return later
}

// add adds an entry, unless it changes nothing.
func (b *outputBuilder) add(e index.Entry) {
	was, known := b.reader.lookStored(e.Key)
	v := entryVersion{Entry: e}
	if !known || was != nil {
		v.replaces = replaces(e)
	} else if e.Value == nil { // it was added and deleted in between
		return
	}
	b.entries = append(b.entries, v)
}

// replaces reports whether an entry usually replaces an earlier one.
func replaces(e index.Entry) bool {
	if e.Value == nil {
		return true
	}
	switch e.Key[0] {
	case keys.TableTip, keys.TableLastMessage, keys.TableContext, keys.TableThread, keys.TableBranch, keys.TableBranchBySource, keys.TableCheckpoint,
		keys.TableCheckpointBySource, keys.TableRemnant, keys.TableChildOfContext, keys.TableRequests, keys.TableErased:
		return true
	}
	return false
}

// addGroup adds the version of a group with some spans.
func (b *outputBuilder) addGroup(spans []index.Entry, replaces bool) error {
	value, err := encodeGroup(spans)
	b.entries = append(b.entries, entryVersion{index.Entry{Key: groupKey(spans[0].Key), Value: value}, replaces, spans})
	return err
}

// addCompleteGroups adds the groups whose entries are all in a batch, and returns the other entries.
func (b *outputBuilder) addCompleteGroups(later []index.Entry) (rest []index.Entry, err error) {
	for len(later) > 0 {
		n := 0
		if isSpan(later[0].Key) {
			n = complete(later)
		}
		if n == 0 {
			rest, later = append(rest, later[0]), later[1:]
			continue
		}
		if err := b.addGroup(later[:n:n], false); err != nil {
			return nil, err
		}
		later = later[n:]
	}
	return rest, nil
}

// complete returns the number of spans of the first group, if the sorted spans begin with all of it and continue the run.
// Otherwise it returns 0. A complete group need not be unfolded.
func complete(spans []index.Entry) int {
	first := spans[0].Key
	n := inGroup
	switch keys.ReadUint64(first[spanPrefix:]) {
	case 1: // there is no place 0
		n--
	default:
		if first[spanKey-1]%inGroup != 0 {
			return 0
		}
	}
	if n >= len(spans) || !bytes.HasPrefix(spans[n].Key, first[:spanPrefix]) || !bytes.Equal(spans[n-1].Key, lastInGroup(groupKey(first))) {
		return 0
	}
	return n
}

// fold adds the entries that are unfolded, and the entries that depend on them.
func (b *outputBuilder) fold(all *unfolded) error {
	spans := all.between(keys.Of(keys.TableSpan), keys.Of(keys.TableSpan+1))
	if err := b.addGroups(spans); err != nil {
		return err
	}
	for _, e := range all.between(nil, nil) {
		if !isSpan(e.Key) {
			b.add(e)
		}
	}
	orders, err := b.reader.orders(all)
	for _, e := range orders {
		b.add(e)
	}
	return err
}

// addGroups adds the versions of the groups that get spans, with those that they have already.
func (b *outputBuilder) addGroups(spans []index.Entry) error {
	parts := byGroup(spans)
	stored, err := b.reader.earlierSpans(parts)
	if err != nil {
		return err
	}
	for _, part := range parts {
		var all []index.Entry
		for k := range placesBefore(part[0].Key) {
			if v := stored[string(k)]; v != nil {
				all = append(all, index.Entry{Key: k, Value: v})
			}
		}
		if err := b.addGroup(append(all, part...), len(all) > 0); err != nil {
			return err
		}
	}
	return nil
}

// byGroup divides sorted spans by their groups.
func byGroup(spans []index.Entry) (parts [][]index.Entry) {
	for len(spans) > 0 {
		end := lastInGroup(groupKey(spans[0].Key))
		n := 1
		for n < len(spans) && bytes.Compare(spans[n].Key, end) <= 0 {
			n++
		}
		parts, spans = append(parts, spans[:n]), spans[n:]
	}
	return parts
}

// earlierSpans returns the values of the spans of each group before the given part of it, by key. It reads those that are not
// cached.
func (t *stateReader) earlierSpans(parts [][]index.Entry) (map[string][]byte, error) {
	// What is known is kept: while the rest is read, the cache may drop it.
	stored := make(map[string][]byte)
	var n need
	for _, part := range parts {
		for k := range placesBefore(part[0].Key) {
			if v, known := t.lookStored(k); known {
				stored[string(k)] = v
			} else {
				n.Keys = append(n.Keys, k)
			}
		}
	}
	if err := t.read(t.ctx, n); err != nil {
		return nil, err
	}
	for _, k := range n.Keys {
		v, known := t.fetched.value(k)
		if !known {
			return nil, fmt.Errorf("the span %x was not read", k)
		}
		stored[string(k)] = v
	}
	return stored, nil
}

// orders returns the entries that list threads in order, of the threads that a fold changes.
func (t *stateReader) orders(all *unfolded) ([]index.Entry, error) {
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
func (t *stateReader) fetchListings(threads []structure.ThreadID, states ...read.Getter) error {
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
func (t *stateReader) fetchStored(ctx context.Context, ks [][]byte) error {
	var n need
	for _, k := range ks {
		if _, known := t.lookStored(k); !known {
			n.Keys = append(n.Keys, k)
		}
	}
	return t.read(ctx, n)
}
