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
// A sequence is a list of subjects that are used in this order. A piece is a use of consecutive ones
// of them, in one commit and run:
//
//	piecesByte, sequence (4), commit (8), place (8), first offset (2) → length, position and run
//
// A pointer says that a subject is at an offset of a sequence, and what is added to the place and the
// position of a piece, which are those of offset 0 plus useBias, and the number in the value. Its key is that of
// a use in commit 0, with the number of the pointer among those of its subject:
//
//	byte, subject (16), 0 (8), number (4) → sequence, offset, place, position, number
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
	pieceParts    = []KeyPart{{Size: 4}, {Size: 8}, {Size: 8}, {Size: 2}}
	pointerFields = []Field{{Form: Number}, {Form: Number}, {Form: Number}, {Form: Number}, {Form: Number}}
)

// withSeries adds the entries of series to a shape.
type withSeries struct{ Shape }

func (s withSeries) Parts(first byte) []KeyPart {
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

// pointer is where a subject is in a sequence.
type pointer struct{ sequence, offset, place, position, number uint64 }

func (p pointer) appendValue(dst []byte) []byte {
	for _, x := range [...]uint64{p.sequence, p.offset, p.place, p.position, p.number} {
		dst = binary.AppendUvarint(dst, x)
	}
	return dst
}

func readPointer(value []byte) (p pointer, ok bool) {
	v := varint.Reader{Rest: value}
	p = pointer{v.AtMost(math.MaxUint32), v.AtMost(math.MaxUint16), v.AtMost(maxStep), v.AtMost(maxStep), v.Next()}
	return p, !v.Bad && len(v.Rest) == 0
}

// piece is a use of consecutive subjects of a sequence.
type piece struct {
	sequence      uint32
	first, length uint16
	run           uint32 // its place in the dictionary
	commit        uint64
	place         uint64 // at offset 0
	position      uint64 // at offset 0
}

func appendPieceKey(dst []byte, sequence uint32, commit, place uint64, first uint16) []byte {
	dst = binary.BigEndian.AppendUint32(append(dst, piecesByte), sequence)
	dst = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, commit), place)
	return binary.BigEndian.AppendUint16(dst, first)
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
