package postgres

import (
	"bytes"
	"encoding/binary"
	"iter"
	"math"
	"math/bits"

	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// A row of the table takes some 200 bytes beside its entry, so the entries of spans are in groups of consecutive places of a
// run. The key of a group is that of its first place. A fold that adds spans to a group writes a new version of all of it.

// inGroup is the number of places of a group. Digests are most of it, so that larger ones would save little.
const inGroup = 16

// spanPrefix is the size of the start that the keys of the spans of a run share, and spanKey that of such a key.
const (
	spanPrefix = 17
	spanKey    = spanPrefix + 8
)

// isSpan reports whether a key is that of a span, or a longer one that sorts between two spans.
func isSpan(key []byte) bool { return len(key) >= spanKey && key[0] == keys.TableSpan }

// groupKey returns the key of the group with the first span from a key on.
func groupKey(key []byte) []byte {
	place := keys.ReadUint64(key[spanPrefix:])
	if len(key) > spanKey && place < math.MaxUint64 {
		place++
	}
	return binary.BigEndian.AppendUint64(bytes.Clone(key[:spanPrefix]), place-place%inGroup)
}

// lastInGroup returns the key of the last place of a group.
func lastInGroup(group []byte) []byte {
	return binary.BigEndian.AppendUint64(bytes.Clone(group[:spanPrefix]), keys.ReadUint64(group[spanPrefix:])|(inGroup-1))
}

// The value of a group is
//
//	the places that have a span, a bit for each, 2 bytes, little-endian
//	for each span: the place of its commit in the row of the log, a varint; the number of the row, from that of the span
//	before it, a signed varint; its digest
//
// appendSpan adds the next span to a group.
func appendSpan(group []byte, key []byte, p keys.SpanLocation, before int64) []byte {
	if len(group) == 0 {
		group = []byte{0, 0}
	}
	places := binary.LittleEndian.Uint16(group)
	binary.LittleEndian.PutUint16(group, places|1<<(key[spanKey-1]%inGroup))
	group = binary.AppendUvarint(group, uint64(p.Frame.Segment))
	group = binary.AppendVarint(group, p.Frame.Offset-before)
	return append(group, p.Digest[:]...)
}

// readSpan reads the value of a span that a group can have.
func readSpan(value []byte) (p keys.SpanLocation, err error) {
	if p, err = keys.ReadSpanLocation(value); err == nil && p.Frame.Offset < 0 {
		err = keys.ErrValue
	}
	return p, err
}

// encodeGroup returns the value of a group of entries, which are sorted.
func encodeGroup(all []index.Entry) (value []byte, err error) {
	before := int64(0)
	for _, e := range all {
		p, err := readSpan(e.Value)
		if err != nil {
			return nil, err
		}
		value = appendSpan(value, e.Key, p, before)
		before = p.Frame.Offset
	}
	return value, nil
}

var errGroup = &backend.CorruptError{File: "lineage_entry", What: "a group of spans"}

// decodeGroup is the inverse of encodeGroup.
func decodeGroup(key, value []byte) (all []index.Entry, err error) {
	if len(key) != spanKey || key[spanKey-1]%inGroup != 0 || len(value) < 2 {
		return nil, errGroup
	}
	places, rest := binary.LittleEndian.Uint16(value), value[2:]
	first := keys.ReadUint64(key[spanPrefix:])
	all = make([]index.Entry, 0, bits.OnesCount16(places))
	at := int64(0)
	for ; places != 0; places &= places - 1 {
		segment, n := binary.Uvarint(rest)
		if n <= 0 || segment > math.MaxUint32 {
			return nil, errGroup
		}
		rest = rest[n:]
		step, n := binary.Varint(rest)
		if at += step; n <= 0 || at < 0 || len(rest)-n < len(structure.Digest{}) {
			return nil, errGroup
		}
		rest = rest[n:]
		v := keys.AppendPosition(make([]byte, 0, 2*binary.MaxVarintLen64+len(structure.Digest{})), journal.Position{Segment: uint32(segment), Offset: at})
		v = append(v, rest[:len(structure.Digest{})]...)
		rest = rest[len(structure.Digest{}):]
		k := binary.BigEndian.AppendUint64(bytes.Clone(key[:spanPrefix]), first+uint64(bits.TrailingZeros16(places)))
		all = append(all, index.Entry{Key: k, Value: v})
	}
	if len(all) == 0 || len(rest) > 0 {
		return nil, errGroup
	}
	return all, nil
}

// placesBefore yields the keys of the places of a group before a key, in order.
func placesBefore(key []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		prefix, end := key[:spanPrefix], keys.ReadUint64(key[spanPrefix:])
		for place := max(1, end-end%inGroup); place < end; place++ {
			if !yield(binary.BigEndian.AppendUint64(bytes.Clone(prefix), place)) {
				return
			}
		}
	}
}

// ofRun reports whether a range has the spans of a run.
func ofRun(r read.Range) bool {
	return len(r.From) == spanPrefix && r.From[0] == keys.TableSpan && bytes.Equal(r.To, keys.PrefixEnd(r.From))
}
