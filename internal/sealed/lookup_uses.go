package sealed

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"

	"github.com/lineage-store/lineage/internal/varint"
)

// A lookup of uses reads those in series too, at their places among the entries that are stored, and leaves out pointers and pieces.

// hasSeries reports whether the table has pieces. They are its last entries.
func (t *Table) hasSeries() bool {
	firsts := t.entries().firsts
	return len(firsts) > 0 && t.shape.isPiece(firsts[len(firsts)-1][0])
}

// pointers returns the pointers of a subject.
func (l *lookup) pointers(subject []byte) (all []pointer, err error) {
	from, to := appendUseKey(nil, subject, 0, 0), appendUseKey(nil, subject, 0, maxSubjectPointers)
	for from != nil { // they may be in two blocks
		var entries []Entry
		if entries, from, err = l.page(from, to, maxSubjectPointers); err != nil {
			return nil, err
		}
		if all, err = appendPointers(all, entries); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func appendPointers(dst []pointer, entries []Entry) ([]pointer, error) {
	for _, e := range entries {
		p, ok := readPointer(e.Value)
		if !ok {
			return nil, ErrDamaged
		}
		dst = append(dst, p)
	}
	return dst, nil
}

// uses returns uses of a subject in series, in order, with from <= key < to, at least limit of them if there are so many.
// more reports whether others may follow.
func (l *lookup) uses(subject []byte, pointers []pointer, from, to []byte, limit int) (all []Entry, more bool, err error) {
	var last []byte // the least of the last uses of the pointers with more
	for _, p := range pointers {
		found, cut, err := l.usesAt(subject, p, from, to, limit)
		if err != nil {
			return nil, false, err
		}
		if cut {
			if end := found[len(found)-1].Key; last == nil || bytes.Compare(end, last) < 0 {
				last = end
			}
		}
		if all, err = mergeEntries(all, found); err != nil {
			return nil, false, err
		}
	}
	if last == nil {
		return all, false, nil
	}
	return before(all, after(last)), true, nil
}

// usesAt returns uses of one pointer, at most limit.
func (l *lookup) usesAt(subject []byte, p pointer, from, to []byte, limit int) (found []Entry, more bool, err error) {
	var bound [useSize]byte // what is less is before from
	if bytes.HasPrefix(from, subject) {
		copy(bound[:], from)
	}
	commit, place := binary.BigEndian.Uint64(bound[1+subjectSize:]), binary.BigEndian.Uint32(bound[useSize-4:])
	var seek [pieceSize]byte
	n, i, err := l.find(appendPieceKey(seek[:0], uint32(p.sequence), commit, uint64(place)+useBias-p.place, 0))
	if err != nil || n < 0 {
		return nil, false, err
	}
	var slab []byte // of keys and values
	for ; ; i++ {
		if i == l.count {
			if n++; n == len(l.entries().blocks) {
				return found, false, nil
			}
			if err := l.enter(n); err != nil {
				return nil, false, err
			}
			i = 0
		}
		in, u, err := l.useAt(p, n, i)
		switch {
		case err != nil:
			return nil, false, err
		case in == otherEntry:
			return found, false, nil
		case in == otherPiece:
			continue
		}
		if cap(slab)-len(slab) < useSize+2*binary.MaxVarintLen64+idSize {
			slab = make([]byte, 0, min(limit, 2*len(found)+1)*(useSize+4+idSize)+2*binary.MaxVarintLen64)
		}
		start := len(slab)
		slab = appendUseKey(slab, subject, u.commit, u.place)
		e := Entry{Key: slab[start:len(slab):len(slab)]}
		if bytes.Compare(e.Key, from) < 0 {
			continue
		}
		if bytes.Compare(e.Key, to) >= 0 {
			return found, false, nil
		}
		if len(found) > 0 && bytes.Compare(found[len(found)-1].Key, e.Key) >= 0 {
			return nil, false, damaged(l.kinds, n)
		}
		start = len(slab)
		slab = append(binary.AppendUvarint(slab, u.position), u.run[:]...)
		slab = binary.AppendUvarint(slab, p.number)
		e.Value = slab[start:len(slab):len(slab)]
		if found = append(found, e); len(found) == limit {
			return found, true, nil
		}
	}
}

// pieceUse is what a piece says of a use.
type pieceUse struct {
	commit, position uint64
	place            uint32
	run              [idSize]byte
}

const (
	hasUse     = iota // a piece with the offset of a pointer
	otherPiece        // of the same sequence
	otherEntry        // a piece of another sequence, or no piece
)

// useAt reads the use of a pointer's subject in an entry of block n.
func (l *lookup) useAt(p pointer, n, i int) (in int, u pieceUse, err error) {
	var memory [2 * useSize]byte
	key, err := l.appendKey(memory[:0], i)
	if err != nil {
		return 0, u, err
	}
	if len(key) != pieceSize || key[0] != piecesByte || uint64(binary.BigEndian.Uint32(key[1:])) != p.sequence {
		return otherEntry, u, nil
	}
	u.commit = binary.BigEndian.Uint64(key[5:])
	place, first := binary.BigEndian.Uint64(key[13:])+p.place-useBias, uint64(binary.BigEndian.Uint16(key[21:]))
	if first > p.offset {
		return otherPiece, u, nil
	}
	value, err := l.appendValue(memory[:0], &l.dictionaries, i)
	if err != nil {
		return 0, u, err
	}
	v := varint.Reader{Rest: value}
	length, position := v.Next(), v.Next()
	if first+length <= p.offset {
		return otherPiece, u, nil
	}
	u.place, u.position = uint32(place), position+p.position-useBias
	if v.Bad || length > math.MaxUint16 || len(v.Rest) != idSize || u.commit == 0 || place > math.MaxUint32 || u.position == 0 {
		return 0, u, damaged(l.kinds, n)
	}
	u.run = [idSize]byte(v.Rest)
	return hasUse, u, nil
}

// mergeEntries merges ordered entries. No key is in both.
func mergeEntries(a, b []Entry) ([]Entry, error) {
	if len(a) == 0 {
		return b, nil
	}
	if len(b) == 0 {
		return a, nil
	}
	merged := make([]Entry, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		switch order := bytes.Compare(a[0].Key, b[0].Key); {
		case order == 0:
			return nil, ErrDamaged
		case order < 0:
			merged, a = append(merged, a[0]), a[1:]
		default:
			merged, b = append(merged, b[0]), b[1:]
		}
	}
	return append(append(merged, a...), b...), nil
}

// before returns the entries with lesser keys.
func before(entries []Entry, key []byte) []Entry {
	n, _ := slices.BinarySearchFunc(entries, key, func(e Entry, key []byte) int { return bytes.Compare(e.Key, key) })
	return entries[:n]
}

// getUse returns the value of a use in a series.
func (l *lookup) getUse(key []byte) (value []byte, ok bool, err error) {
	if len(key) != useSize || !l.shape.hasSubject(key) || !l.hasSeries() {
		return nil, false, nil
	}
	subject := key[:1+subjectSize]
	pointers, err := l.pointers(subject)
	if err != nil {
		return nil, false, err
	}
	all, _, err := l.uses(subject, pointers, key, after(key), 1)
	if err != nil || len(all) == 0 {
		return nil, false, err
	}
	return all[0].Value, true, nil
}

// pageOfUses returns the entries that page returns, with uses in place of pointers.
func (l *lookup) pageOfUses(from, to []byte, limit int) (out []Entry, next []byte, err error) {
	subject, uses, more, err := l.usesFrom(from, to, limit)
	if err != nil {
		return nil, nil, err
	}
	if more {
		to = after(uses[len(uses)-1].Key)
	}
	stored, next, err := l.page(from, to, limit)
	if err != nil {
		return nil, nil, err
	}
	end := next // of what is known of stored entries
	if end == nil {
		end = to
	}
	if known := before(uses, end); len(known) < len(uses) {
		uses, more = known, false
	}
	for {
		others, rest := l.othersOf(stored, subject)
		if uses, err = mergeEntries(uses, others); err != nil {
			return nil, nil, err
		}
		if out = append(out, uses...); more {
			return out, after(out[len(out)-1].Key), nil
		}
		for stored = rest; len(stored) > 0 && !l.shape.isPointer(stored[0].Key); stored = stored[1:] {
			out = append(out, stored[0])
		}
		if len(stored) == 0 {
			return out, next, nil
		}
		if len(out) >= limit {
			return out, stored[0].Key, nil
		}
		subject = stored[0].Key[:1+subjectSize]
		pointers, err := appendPointers(nil, before(stored, appendUseKey(nil, subject, 1, 0)))
		if err != nil {
			return nil, nil, err
		}
		if uses, more, err = l.uses(subject, pointers, stored[0].Key, end, max(limit-len(out), minUses)); err != nil {
			return nil, nil, err
		}
		if more { // what is stored after these follows later
			stored = before(stored, after(uses[len(uses)-1].Key))
		}
	}
}

// usesFrom returns uses in series of the subject of a page that begins after the pointers of this subject, or no subject.
func (l *lookup) usesFrom(from, to []byte, limit int) (subject []byte, uses []Entry, more bool, err error) {
	if !l.shape.hasSubject(from) || bytes.Compare(from, appendUseKey(nil, from, 0, 0)) <= 0 {
		return nil, nil, false, nil
	}
	subject = from[:1+subjectSize]
	pointers, err := l.pointers(subject)
	if err != nil {
		return nil, nil, false, err
	}
	uses, more, err = l.uses(subject, pointers, from, to, max(limit, minUses))
	return subject, uses, more, err
}

// othersOf divides entries after those of a subject at their beginning, and returns these without pointers.
func (l *lookup) othersOf(entries []Entry, subject []byte) (others, rest []Entry) {
	n := 0
	for n < len(entries) && subject != nil && bytes.HasPrefix(entries[n].Key, subject) {
		n++
	}
	others = entries[:n]
	for len(others) > 0 && l.shape.isPointer(others[0].Key) {
		others = others[1:]
	}
	return others, entries[n:]
}

// lastOfUses is last with uses in place of pointers. It reads all uses of a subject.
func (l *lookup) lastOfUses(from, to []byte) (e Entry, ok bool, err error) {
	for {
		if e, ok, err = l.last(from, to); err != nil {
			return e, false, err
		}
		subject := from
		if ok {
			subject = e.Key
		}
		if !l.shape.hasSubject(subject) {
			return e, ok, nil
		}
		lastUse, found, err := l.lastUse(subject[:1+subjectSize], from, to)
		if err != nil {
			return e, false, err
		}
		if found && (!ok || bytes.Compare(lastUse.Key, e.Key) > 0) {
			return lastUse, true, nil
		}
		if !ok || !l.shape.isPointer(e.Key) {
			return e, ok, nil
		}
		to = e.Key // a pointer is no entry for callers
	}
}

// lastUse returns the last use in series of a subject in a range.
func (l *lookup) lastUse(subject, from, to []byte) (e Entry, ok bool, err error) {
	pointers, err := l.pointers(subject)
	if err != nil {
		return e, false, err
	}
	for more := true; more; {
		var page []Entry
		if page, more, err = l.uses(subject, pointers, from, to, maxCount); err != nil {
			return e, false, err
		}
		if n := len(page); n > 0 {
			e, ok = page[n-1], true
			from = after(e.Key)
		}
	}
	return e, ok, nil
}
