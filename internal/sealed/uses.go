package sealed

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/lineage-store/lineage/internal/varint"
)

// A use is an entry that says in which position of which run something is used: its key is a byte, a
// subject (16 bytes), a commit (8, not 0) and a place in it (4); its value is a Ref, not to position 0, and a number.
// Histories that begin alike use the same subjects in the same order, so most uses are stored as series.
//
// A section is a list of subjects that are used in this order. A piece is a use of consecutive ones
// of them, in one commit and run:
//
//	piecesByte, section (4), commit (8), place (8), first offset (2) → length, position and run
//
// A pointer says that a subject is at an offset of a section, and what is added to the place and the
// position of a piece, which are those of offset 0 plus useBias, and the number in the value. Its key is that of
// a use in commit 0, with the number of the pointer among those of its subject:
//
//	byte, subject (16), 0 (8), number (4) → section, offset, place, position, number
//
// So the pieces that have an offset are in the order of its uses. Entries that are in no piece are
// stored as they are. Readers of the table see uses only.

const (
	piecesByte  = 0xff // the first byte of pieces, and of no other key
	subjectSize = 16
	useSize     = 1 + subjectSize + 8 + 4
	pieceSize   = 1 + 4 + 8 + 8 + 2
	// useBias keeps the place and position at offset 0 above 0: what is added for an offset is less.
	useBias = 1 << 32
	maxStep = 1 << 31
	// maxSubjectPointers limits the pointers of a subject: a lookup reads the pieces of each.
	maxSubjectPointers = 4
	// minUses is how many uses of a series are read at once, since to find the first costs more.
	minUses = 32
)

var (
	pieceParts    = []Part{{Size: 4}, {Size: 8}, {Size: 8}, {Size: 2}}
	pointerFields = []Field{{Form: Number}, {Form: Number}, {Form: Number}, {Form: Number}, {Form: Number}}
)

// withSeries adds the entries of series to a shape.
type withSeries struct{ Shape }

func (s withSeries) Parts(first byte) []Part {
	if s.isPiece(first) {
		return pieceParts
	}
	return s.Shape.Parts(first)
}

func (s withSeries) Fields(dst []Field, key, value []byte) []Field {
	switch {
	case s.isPiece(key[0]):
		_, kind := s.Uses()
		return append(dst, Field{Form: Number}, Field{Form: Ref, Kind: kind})
	case s.isPointer(key):
		return append(dst, pointerFields...)
	}
	return s.Shape.Fields(dst, key, value)
}

// isPiece reports whether keys with a first byte are those of pieces.
func (s withSeries) isPiece(first byte) bool {
	uses, _ := s.Uses()
	return uses != 0 && first == piecesByte
}

// hasSubject reports whether a key or bound begins with the byte of uses and a subject.
func (s withSeries) hasSubject(key []byte) bool {
	first, _ := s.Uses()
	return first != 0 && len(key) > subjectSize && key[0] == first
}

// isPointer reports whether a key is one of a pointer. No other key has its form.
func (s withSeries) isPointer(key []byte) bool {
	return s.hasSubject(key) && len(key) >= useSize-4 && binary.BigEndian.Uint64(key[1+subjectSize:]) == 0
}

// appendUseKey appends the key of a use, or the key of a pointer for commit 0. subject begins with the byte of uses.
func appendUseKey(dst, subject []byte, commit uint64, place uint32) []byte {
	dst = append(dst, subject[:1+subjectSize]...)
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(dst, commit), place)
}

// after returns the key that follows another directly.
func after(key []byte) []byte { return append(bytes.Clone(key), 0) }

// pointer is where a subject is in a section.
type pointer struct{ section, offset, place, position, number uint64 }

func (p pointer) appendValue(dst []byte) []byte {
	for _, x := range [...]uint64{p.section, p.offset, p.place, p.position, p.number} {
		dst = binary.AppendUvarint(dst, x)
	}
	return dst
}

func readPointer(value []byte) (p pointer, ok bool) {
	v := varint.Reader{Rest: value}
	p = pointer{v.AtMost(math.MaxUint32), v.AtMost(math.MaxUint16), v.AtMost(maxStep), v.AtMost(maxStep), v.Next()}
	return p, !v.Bad && len(v.Rest) == 0
}

// piece is a use of consecutive subjects of a section.
type piece struct {
	section       uint32
	first, length uint16
	run           uint32 // its place in the dictionary
	commit        uint64
	place         uint64 // at offset 0
	position      uint64 // at offset 0
}

func appendPieceKey(dst []byte, section uint32, commit, place uint64, first uint16) []byte {
	dst = binary.BigEndian.AppendUint32(append(dst, piecesByte), section)
	dst = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, commit), place)
	return binary.BigEndian.AppendUint16(dst, first)
}

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
		for _, e := range entries {
			p, ok := readPointer(e.Value)
			if !ok {
				return nil, ErrDamaged
			}
			all = append(all, p)
		}
	}
	return all, nil
}

// uses returns uses of a subject in series, in order, with from <= key < to, at least limit of them if there are so many.
// more reports whether others may follow.
func (l *lookup) uses(subject []byte, pointers []pointer, from, to []byte, limit int) (all []Entry, more bool, err error) {
	var last []byte // of the uses that were found of each pointer with more: the least
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
	for n := len(all); ; n-- {
		if bytes.Compare(all[n-1].Key, last) <= 0 {
			return all[:n], true, nil
		}
	}
}

// usesAt returns uses of one pointer, at most limit.
func (l *lookup) usesAt(subject []byte, p pointer, from, to []byte, limit int) (found []Entry, more bool, err error) {
	var bound [useSize]byte // what is less is before from
	if bytes.HasPrefix(from, subject) {
		copy(bound[:], from)
	}
	commit, place := binary.BigEndian.Uint64(bound[1+subjectSize:]), binary.BigEndian.Uint32(bound[useSize-4:])
	var seek, memory [2 * useSize]byte
	n, i, err := l.find(appendPieceKey(seek[:0], uint32(p.section), commit, uint64(place)+useBias-p.place, 0))
	if err != nil || n < 0 {
		return nil, false, err
	}
	var slab []byte
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
		key, err := l.appendKey(memory[:0], i)
		if err != nil {
			return nil, false, err
		}
		if len(key) != pieceSize || key[0] != piecesByte || uint64(binary.BigEndian.Uint32(key[1:])) != p.section {
			return found, false, nil
		}
		commit, first := binary.BigEndian.Uint64(key[5:]), uint64(binary.BigEndian.Uint16(key[21:]))
		if first > p.offset {
			continue
		}
		place := binary.BigEndian.Uint64(key[13:]) + p.place - useBias
		value, err := l.appendValue(memory[:0], &l.dictionaries, i)
		if err != nil {
			return nil, false, err
		}
		v := varint.Reader{Rest: value}
		length, position := v.Next(), v.Next()
		if first+length <= p.offset {
			continue
		}
		position += p.position - useBias
		if v.Bad || length > math.MaxUint16 || len(v.Rest) != idSize || commit == 0 || place > math.MaxUint32 || position == 0 {
			return nil, false, damaged(l.kinds, n)
		}
		if cap(slab)-len(slab) < useSize+2*binary.MaxVarintLen64+idSize {
			slab = make([]byte, 0, min(limit, 2*len(found)+1)*(useSize+4+idSize)+2*binary.MaxVarintLen64)
		}
		start := len(slab)
		slab = appendUseKey(slab, subject, commit, uint32(place))
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
		slab = append(binary.AppendUvarint(slab, position), v.Rest...)
		slab = binary.AppendUvarint(slab, p.number)
		e.Value = slab[start:len(slab):len(slab)]
		if found = append(found, e); len(found) == limit {
			return found, true, nil
		}
	}
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

// pageOfUses is page with uses in place of pointers.
func (l *lookup) pageOfUses(from, to []byte, limit int) (out []Entry, next []byte, err error) {
	var subject []byte // whose pointers are before from
	var waiting []Entry
	more := false
	if l.shape.hasSubject(from) && bytes.Compare(from, appendUseKey(nil, from, 0, 0)) > 0 {
		subject = from[:1+subjectSize]
		pointers, err := l.pointers(subject)
		if err != nil {
			return nil, nil, err
		}
		if waiting, more, err = l.uses(subject, pointers, from, to, max(limit, minUses)); err != nil {
			return nil, nil, err
		}
		if more {
			to = after(waiting[len(waiting)-1].Key)
		}
	}
	stored, next, err := l.page(from, to, limit)
	if err != nil {
		return nil, nil, err
	}
	end := next // of what is known of stored entries
	if end == nil {
		end = to
	}
	if n := len(waiting); n > 0 && bytes.Compare(waiting[n-1].Key, end) >= 0 {
		for ; n > 0 && bytes.Compare(waiting[n-1].Key, end) >= 0; n-- {
		}
		waiting, more = waiting[:n], false
	}
	for {
		own := 0
		for own < len(stored) && subject != nil && bytes.HasPrefix(stored[own].Key, subject) {
			own++
		}
		plain := stored[:own]
		for len(plain) > 0 && l.shape.isPointer(plain[0].Key) {
			plain = plain[1:]
		}
		stored = stored[own:]
		if waiting, err = mergeEntries(waiting, plain); err != nil {
			return nil, nil, err
		}
		out = append(out, waiting...)
		if waiting = nil; more {
			return out, after(out[len(out)-1].Key), nil
		}
		for len(stored) > 0 && !l.shape.isPointer(stored[0].Key) {
			out, stored = append(out, stored[0]), stored[1:]
		}
		if len(stored) == 0 {
			return out, next, nil
		}
		if len(out) >= limit {
			return out, stored[0].Key, nil
		}
		subject = stored[0].Key[:1+subjectSize]
		var pointers []pointer
		for _, e := range stored {
			if !bytes.HasPrefix(e.Key, subject) || !l.shape.isPointer(e.Key) {
				break
			}
			p, ok := readPointer(e.Value)
			if !ok {
				return nil, nil, ErrDamaged
			}
			pointers = append(pointers, p)
		}
		if waiting, more, err = l.uses(subject, pointers, stored[0].Key, end, max(limit-len(out), minUses)); err != nil {
			return nil, nil, err
		}
		if more { // what is stored after these follows later
			last := waiting[len(waiting)-1].Key
			n := 0
			for n < len(stored) && bytes.Compare(stored[n].Key, last) <= 0 {
				n++
			}
			stored = stored[:n]
		}
	}
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
		subject = subject[:1+subjectSize]
		pointers, err := l.pointers(subject)
		if err != nil {
			return e, false, err
		}
		for at, more := from, true; more; {
			var all []Entry
			if all, more, err = l.uses(subject, pointers, at, to, maxCount); err != nil {
				return e, false, err
			}
			if n := len(all); n > 0 {
				at = after(all[n-1].Key)
				if !ok || bytes.Compare(all[n-1].Key, e.Key) > 0 {
					e, ok = all[n-1], true
				}
			}
		}
		if !ok || !l.shape.isPointer(e.Key) {
			return e, ok, nil
		}
		to = e.Key
	}
}

// isOpen reports whether a key may be one of an entry.
func (s withSeries) isOpen(key []byte) bool {
	return len(key) == 0 || !s.isPiece(key[0]) && !s.isPointer(key)
}

// beforePieces returns the end of a range without pieces.
func beforePieces(to []byte) []byte {
	if to == nil || len(to) > 0 && to[0] == piecesByte {
		return []byte{piecesByte}
	}
	return to
}
