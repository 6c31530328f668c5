package keys

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/internal/judge"
	"github.com/lineage-store/lineage/internal/varint"
	"github.com/lineage-store/lineage/structure"
)

// ErrValue is returned for a malformed value in the index. Values are checksummed, so the
// cause is a bug or an index of another version.
var ErrValue = errors.New("index value is malformed")

// Varints reads lists of varints.
type Varints struct{ varint.Reader }

// ReadVarints returns a reader of the varints in a value.
func ReadVarints(value []byte) Varints { return Varints{varint.Reader{Rest: value}} }

// Err returns ErrValue if a number was missing.
func (v *Varints) Err() error {
	if v.Bad {
		return ErrValue
	}
	return nil
}

// Location is where the record is of a block or chunk: its frame, its offset in the segment,
// and the size of the body.
type Location struct {
	Frame  journal.Position
	Record int64
	Size   int64
}

// Append appends the index value of a block or chunk.
func (p Location) Append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(p.Frame.Segment))
	dst = binary.AppendUvarint(dst, uint64(p.Frame.Offset))
	dst = binary.AppendUvarint(dst, uint64(p.Record-p.Frame.Offset))
	return binary.AppendUvarint(dst, uint64(p.Size))
}

// ReadLocation is the inverse of Location.Append.
func ReadLocation(b []byte) (p Location, err error) {
	v := ReadVarints(b)
	p.Frame = ReadPosition(&v)
	p.Record = p.Frame.Offset + int64(v.Next())
	p.Size = int64(v.Next())
	return p, v.Err()
}

// AppendPosition appends a position of the journal.
func AppendPosition(dst []byte, p journal.Position) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(dst, uint64(p.Segment)), uint64(p.Offset))
}

// ReadPosition is the inverse of AppendPosition.
func ReadPosition(v *Varints) journal.Position {
	return journal.Position{Segment: uint32(v.Next()), Offset: int64(v.Next())}
}

// AppendRef appends a reference to a span.
func AppendRef(dst []byte, r structure.SpanRef) []byte {
	dst = binary.AppendUvarint(dst, r.Seq)
	if r.Seq != 0 {
		dst = append(dst, r.Run[:]...)
	}
	return dst
}

// ReadRef is the inverse of AppendRef.
func ReadRef(v *Varints) (r structure.SpanRef) {
	if r.Seq = v.Next(); r.Seq != 0 {
		if len(v.Rest) < len(r.Run) {
			v.Bad = true
			return structure.SpanRef{}
		}
		v.Rest = v.Rest[copy(r.Run[:], v.Rest):]
	}
	return r
}

// AppendTip appends the index value of a tip.
func AppendTip(dst []byte, t judge.Tip) []byte {
	dst = AppendRef(dst, t.Span)
	dst = binary.AppendUvarint(dst, t.Commit)
	return binary.AppendUvarint(dst, uint64(t.At))
}

// ReadTip is the inverse of AppendTip.
func ReadTip(b []byte) (t judge.Tip, err error) {
	v := ReadVarints(b)
	t.Span = ReadRef(&v)
	t.Commit = v.Next()
	t.At = int64(v.Next())
	return t, v.Err()
}

// AppendRun appends the index value of a run.
func AppendRun(dst []byte, r structure.RunInfo) []byte {
	dst = AppendRef(dst, r.Parent)
	dst = binary.AppendUvarint(dst, r.Depth)
	dst = append(dst, r.Digest[:]...)
	if r.Home.Thread.IsZero() {
		return dst
	}
	return binary.AppendUvarint(append(dst, r.Home.Thread[:]...), r.Home.Incarnation)
}

// ReadRun is the inverse of AppendRun.
func ReadRun(id structure.RunID, b []byte) (structure.RunInfo, error) {
	v := ReadVarints(b)
	r := structure.RunInfo{Run: structure.Run{ID: id, Parent: ReadRef(&v)}, Depth: v.Next()}
	if copy(r.Digest[:], v.Rest) != len(r.Digest) {
		v.Bad = true
		return r, v.Err()
	}
	if v.Rest = v.Rest[len(r.Digest):]; len(v.Rest) > 0 {
		v.Rest = v.Rest[copy(r.Home.Thread[:], v.Rest):]
		r.Home.Incarnation = v.Next()
	}
	return r, v.Err()
}

// DigestEvery is the number of spans of a run for which one digest is stored.
const DigestEvery = 64

// SpanLocation is the position of the frame that contains a span.
type SpanLocation struct {
	Frame  journal.Position
	Digest structure.Digest // zero if not stored
}

// ReadSpanLocation reads the index value of a span.
func ReadSpanLocation(b []byte) (p SpanLocation, err error) {
	v := ReadVarints(b)
	p.Frame = ReadPosition(&v)
	if len(v.Rest) > 0 && copy(p.Digest[:], v.Rest) != len(p.Digest) {
		v.Bad = true
	}
	return p, v.Err()
}

// CommitEvery is the number of commits for which one position is stored.
const CommitEvery = 256

// Record decodes a record. It shares no memory with the index.
func Record[R structure.Record](kind structure.Kind, b []byte, id string) (R, error) {
	r, err := structure.UnmarshalRecord(kind, bytes.Clone(b))
	if err != nil {
		var none R
		return none, fmt.Errorf("%v %s: %w", kind, id, err)
	}
	return r.(R), nil
}
