package pack

import (
	"sync"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/structure"
)

// commit is a commit in a pack: its records without bodies.
type commit struct {
	number  uint64
	segment uint32
	start   int64 // of its frame
	end     int64 // of the original frame
	lag     int   // bytes of the durable lag in the frame
	millis  int64

	records []structure.Record
	// bodies has for each record the number of its body, or -1.
	bodies []int64
	// content has the content of each usage, in order.
	content []contentRef
	// offsets are the original offsets of the records, if they differ from the current
	// ones.
	offsets []int
	// verbatim is set if the payload is stored unchanged, as body bodies[0].
	verbatim bool
	sizes    []int64 // of the bodies, parallel to bodies

	// rest describes what precedes the records if the commit began in an earlier chapter.
	// open is set if it continues in the next one.
	rest *before
	open bool

	// Computed from the above; for a commit in several chapters on demand:
	begins  []int // offsets of the records in the payload
	payload int64 // its size, unless it continues in another chapter
	once    sync.Once
	err     error
}

// before is what precedes the rest of a commit.
type before struct {
	at   int // offset of the records in the payload
	last structure.SpanRef
}

// contentRef names the content of a usage: a body of the pack, or an id.
type contentRef struct {
	body int64 // -1 if it is not in the pack
	back int   // number of names since the commit last named it, or -1
	id   content.ID
}

const (
	segmentHeader = 64 // of a journal segment; its first frame follows
	frameHeader   = 8
)

// tight is the end of the commit's frame if it was written now.
func (x *commit) tight() int64 { return x.payloadAt() + x.payload }

// payloadAt is the start of the payload.
func (x *commit) payloadAt() int64 {
	return x.start + frameHeader + int64(uvarintSize(x.number<<1)) + int64(x.lag)
}

func uvarintSize(v uint64) int {
	n := 1
	for ; v >= 0x80; v >>= 7 {
		n++
	}
	return n
}

// startsFrom reports whether a commit's frame starts at or after a position.
func (x *commit) startsFrom(segment uint32, offset int64) bool {
	return x.segment > segment || x.segment == segment && x.start >= offset
}

// has reports whether a span is among the records.
func (x *commit) has(ref structure.SpanRef) bool {
	for _, r := range x.records {
		if s, ok := r.(*structure.Span); ok && s.Ref == ref {
			return true
		}
	}
	return false
}

// objectAt is the place of a numbered object in its chapter. A verbatim payload has
// one number for all its objects.
type objectAt struct{ commit, record int }

// numbered returns the numbered objects of commits.
func numbered(commits []*commit) (objects []objectAt) {
	for i, x := range commits {
		if x.verbatim {
			objects = append(objects, objectAt{commit: i})
			continue
		}
		for k, r := range x.records {
			if kind := r.Kind(); kind == structure.KindBlock || kind == structure.KindChunk {
				objects = append(objects, objectAt{i, k})
			}
		}
	}
	return objects
}

// joinedCommit returns the commit of which the pieces are in consecutive chapters.
func joinedCommit(pieces []*commit) *commit {
	x := pieces[0]
	out := &commit{number: x.number, segment: x.segment, start: x.start, end: x.end, lag: x.lag, millis: x.millis}
	for _, piece := range pieces {
		out.records = append(out.records, piece.records...)
		out.bodies = append(out.bodies, piece.bodies...)
		out.content = append(out.content, piece.content...)
		out.offsets = append(out.offsets, piece.offsets...)
	}
	return out
}

// newCommit returns a commit without records, whose frame and payload are at positions of a segment.
func newCommit(number uint64, segment uint32, start, payload, end int64) (*commit, error) {
	x := &commit{number: number, segment: segment, start: start, end: end}
	x.lag = int(payload - start - int64(frameHeader+uvarintSize(number<<1)))
	if x.lag < 0 || x.lag > 10 {
		return nil, errForm
	}
	return x, nil
}

// continued returns the piece of the commit in the next chapter, without records. at is the offset of its records in
// the payload, and last the last span before.
func (x *commit) continued(at int, last structure.SpanRef) *commit {
	return &commit{
		number: x.number, segment: x.segment, start: x.start, end: x.end, lag: x.lag, millis: x.millis, rest: &before{at, last},
	}
}
