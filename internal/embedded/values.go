package embedded

import (
	"encoding/binary"
	"errors"

	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/internal/judge"
	"github.com/lineage-store/lineage/structure"
)

// errValue is returned for a value in the index that is not what was put there.
// Values are checksummed where they are kept, so this is a fault of the program
// or an index of another version.
var errValue = errors.New("index value is malformed")

// varints reads values that are lists of varints.
type varints struct {
	rest []byte
	bad  bool
}

func (v *varints) next() uint64 {
	n, w := binary.Uvarint(v.rest)
	if w <= 0 {
		v.bad, v.rest = true, nil
		return 0
	}
	v.rest = v.rest[w:]
	return n
}

func (v *varints) err() error {
	if v.bad {
		return errValue
	}
	return nil
}

// place is where an object's record stands: its frame, its offset in the
// segment, and the size of the object.
type place struct {
	frame  journal.Position
	record int64
	size   int64
}

func (p place) append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(p.frame.Segment))
	dst = binary.AppendUvarint(dst, uint64(p.frame.Offset))
	dst = binary.AppendUvarint(dst, uint64(p.record-p.frame.Offset))
	return binary.AppendUvarint(dst, uint64(p.size))
}

func readPlace(b []byte) (p place, err error) {
	v := varints{rest: b}
	p.frame = readPosition(&v)
	p.record = p.frame.Offset + int64(v.next())
	p.size = int64(v.next())
	return p, v.err()
}

func appendPosition(dst []byte, p journal.Position) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(dst, uint64(p.Segment)), uint64(p.Offset))
}

func readPosition(v *varints) journal.Position {
	return journal.Position{Segment: uint32(v.next()), Offset: int64(v.next())}
}

func appendRef(dst []byte, r structure.SpanRef) []byte {
	dst = binary.AppendUvarint(dst, r.Seq)
	if r.Seq != 0 {
		dst = append(dst, r.Run[:]...)
	}
	return dst
}

func readRef(v *varints) (r structure.SpanRef) {
	if r.Seq = v.next(); r.Seq != 0 {
		if len(v.rest) < len(r.Run) {
			v.bad = true
			return structure.SpanRef{}
		}
		v.rest = v.rest[copy(r.Run[:], v.rest):]
	}
	return r
}

func appendTip(dst []byte, t judge.Tip) []byte {
	dst = appendRef(dst, t.Span)
	dst = binary.AppendUvarint(dst, t.Commit)
	return binary.AppendUvarint(dst, uint64(t.At))
}

func readTip(b []byte) (t judge.Tip, err error) {
	v := varints{rest: b}
	t.Span = readRef(&v)
	t.Commit = v.next()
	t.At = int64(v.next())
	return t, v.err()
}

func appendRun(dst []byte, r structure.RunInfo) []byte {
	dst = appendRef(dst, r.Parent)
	dst = binary.AppendUvarint(dst, r.Depth)
	dst = append(dst, r.Digest[:]...)
	if r.Home.Thread.IsZero() {
		return dst
	}
	return binary.AppendUvarint(append(dst, r.Home.Thread[:]...), r.Home.Incarnation)
}

func readRun(id structure.RunID, b []byte) (structure.RunInfo, error) {
	v := varints{rest: b}
	r := structure.RunInfo{Run: structure.Run{ID: id, Parent: readRef(&v)}, Depth: v.next()}
	if copy(r.Digest[:], v.rest) != len(r.Digest) {
		v.bad = true
		return r, v.err()
	}
	if v.rest = v.rest[len(r.Digest):]; len(v.rest) > 0 {
		v.rest = v.rest[copy(r.Home.Thread[:], v.rest):]
		r.Home.Incarnation = v.next()
	}
	return r, v.err()
}

// digestEvery is how often a span's digest is kept with its place.
const digestEvery = 64

// spanPlace is where the frame of a span stands.
type spanPlace struct {
	frame  journal.Position
	digest structure.Digest // zero when not kept
}

func readSpanPlace(b []byte) (p spanPlace, err error) {
	v := varints{rest: b}
	p.frame = readPosition(&v)
	if len(v.rest) > 0 && copy(p.digest[:], v.rest) != len(p.digest) {
		v.bad = true
	}
	return p, v.err()
}
