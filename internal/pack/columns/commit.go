package columns

import (
	"sync"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/pack/layout"
	"github.com/lineage-store/lineage/internal/varint"
	"github.com/lineage-store/lineage/structure"
)

// Commit is a commit in a pack: its records without bodies.
type Commit struct {
	Number  uint64
	Segment uint32
	Start   int64 // of its frame
	End     int64 // of the original frame
	lag     int   // bytes of the durable lag in the frame
	Millis  int64

	Records []structure.Record
	// Bodies has for each record the number of its body, or -1.
	Bodies []int64
	// Content has the content of each usage, in order.
	Content []ContentRef
	// Offsets are the original offsets of the records, if they differ from the current
	// ones.
	Offsets []int
	// Verbatim is set if the payload is stored unchanged, as body bodies[0].
	Verbatim bool
	Sizes    []int64 // of the bodies, parallel to bodies

	// Rest describes what precedes the records if the commit began in an earlier chapter.
	// open is set if it continues in the next one.
	Rest *before
	Open bool

	// Computed from the above; for a commit in several chapters on demand:
	offsets []int // offsets of the records in the payload
	Payload int64 // its size, unless it continues in another chapter
	once    sync.Once
	err     error
}

// before is what precedes the rest of a commit.
type before struct {
	at   int // offset of the records in the payload
	last structure.SpanRef
}

// ContentRef names the content of a usage: a body of the pack, or an id.
type ContentRef struct {
	Body int64 // -1 if it is not in the pack
	Back int   // number of names since the commit last named it, or -1
	ID   content.ID
}

const (
	SegmentHeader = 64 // of a journal segment; its first frame follows
	FrameHeader   = 8
)

// tight is the end of the commit's frame if it was written now.
func (x *Commit) tight() int64 { return x.PayloadAt() + x.Payload }

// PayloadAt is the start of the payload.
func (x *Commit) PayloadAt() int64 {
	return x.Start + FrameHeader + int64(varint.Len(x.Number<<1)) + int64(x.lag)
}

// StartsFrom reports whether a commit's frame starts at or after a position.
func (x *Commit) StartsFrom(segment uint32, offset int64) bool {
	return x.Segment > segment || x.Segment == segment && x.Start >= offset
}

// Has reports whether a span is among the records.
func (x *Commit) Has(ref structure.SpanRef) bool {
	for _, r := range x.Records {
		if s, ok := r.(*structure.Span); ok && s.Ref == ref {
			return true
		}
	}
	return false
}

// Object is the place of a numbered object in its chapter. A verbatim payload has
// one number for all its objects.
type Object struct{ Commit, Record int }

// Objects returns the numbered objects of commits.
func Objects(commits []*Commit) (objects []Object) {
	for i, x := range commits {
		if x.Verbatim {
			objects = append(objects, Object{Commit: i})
			continue
		}
		for k, r := range x.Records {
			if kind := r.Kind(); kind == structure.KindBlock || kind == structure.KindChunk {
				objects = append(objects, Object{i, k})
			}
		}
	}
	return objects
}

// Joined returns the commit of which the pieces are in consecutive chapters.
func Joined(pieces []*Commit) *Commit {
	x := pieces[0]
	out := &Commit{Number: x.Number, Segment: x.Segment, Start: x.Start, End: x.End, lag: x.lag, Millis: x.Millis}
	for _, piece := range pieces {
		out.Records = append(out.Records, piece.Records...)
		out.Bodies = append(out.Bodies, piece.Bodies...)
		out.Content = append(out.Content, piece.Content...)
		out.Offsets = append(out.Offsets, piece.Offsets...)
	}
	return out
}

// NewCommit returns a commit without records, whose frame and payload are at positions of a segment.
func NewCommit(number uint64, segment uint32, start, payload, end int64) (*Commit, error) {
	x := &Commit{Number: number, Segment: segment, Start: start, End: end}
	x.lag = int(payload - start - int64(FrameHeader+varint.Len(number<<1)))
	if x.lag < 0 || x.lag > 10 {
		return nil, layout.ErrForm
	}
	return x, nil
}

// Continued returns the part of a commit that is in the next chapter, without its records. at is the offset of these records in
// the payload, and last is the last span before them.
func (x *Commit) Continued(at int, last structure.SpanRef) *Commit {
	return &Commit{
		Number: x.Number, Segment: x.Segment, Start: x.Start, End: x.End, lag: x.lag, Millis: x.Millis, Rest: &before{at, last},
	}
}
