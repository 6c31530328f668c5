package pack

import (
	"errors"
	"sync"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/structure"
)

// commit is a commit as a pack holds it: its records without the bodies.
type commit struct {
	number  uint64
	segment uint32
	start   int64 // of its frame
	end     int64 // of its frame when it was first written
	lag     int   // bytes that the durable lag took there
	millis  int64

	records []structure.Record
	// bodies has for each record the number of its body, or -1.
	bodies []int64
	// content has, for each usage in order, whose content it is.
	content []contentRef
	// offsets are where the records began when they were first written, if that
	// is not where they begin now.
	offsets []int
	// verbatim is set when the payload is kept as it is: body bodies[0].
	verbatim bool
	sizes    []int64 // of the bodies, parallel to bodies

	// rest says what comes before the records, where the commit began in a chapter
	// before this one. Where more follow in the next, open is set.
	rest *before
	open bool

	// Computed from the above, of a commit in several chapters when it is needed:
	begins  []int // where the records begin in the payload
	payload int64 // its size, if nothing follows in another chapter
	once    sync.Once
	err     error
}

// before is what the rest of a commit has before it.
type before struct {
	at   int // where the records begin in the payload
	last structure.SpanRef
}

// contentRef names the content of a usage: a body of the pack, or an id.
type contentRef struct {
	body int64 // -1 when it is none of the pack's
	back int   // when the commit names it already: how many names back, else -1
	id   content.ID
}

var errForm = errors.New("not the form of a record")

// former codes the records of one chapter, in the direction of its coder.
type former struct {
	*state
	c *coder

	// bodies are those of a writer that are to come, one behind the other.
	bodies []byte
	// laid are bodies as they stand in the content, by their kinds: all so far of a writer,
	// those to come of a reader, which notes where each begins and its size.
	laid          [bodyKinds][]byte
	begins        [bodyKinds]int64 // of those to come, in the content
	places, sizes []int64
	// text is what the chapter's texts consist of: all so far of a writer, those to
	// come of a reader.
	text []byte
	// id finds an id by its number, and number the number of an id, which is the
	// next when it is new.
	id     func(number uint32) (newID, error)
	number func(id [16]byte) uint32
	// look finds the number of an id that has one, for a writer.
	look func(id [16]byte) uint32
	// derive notes the source that an id is derived from, for a writer. It returns false
	// where a reader would not find it.
	derive func(id [16]byte, source string) bool

	made made

	commit *commit
	used   int          // usages of the commit so far
	names  []contentRef // the content that the commit named so far
	err    error
}

// made is memory for the records that a reader makes, several at a time: a chapter
// is kept as a whole.
type made struct {
	blocks []structure.Block
	spans  []structure.Span
	usages []structure.Usage
}

// mostMade is how many records are made at a time.
const mostMade = 32

// next returns the next of some memory, more of which it makes when needed.
func next[T any](of *[]T) *T {
	if len(*of) == cap(*of) {
		*of = make([]T, 0, min(2*cap(*of)+1, mostMade))
	}
	*of = (*of)[:len(*of)+1]
	return &(*of)[len(*of)-1]
}

// usage returns room for one usage.
func (m *made) usage() []structure.Usage {
	next(&m.usages)
	n := len(m.usages) - 1
	return m.usages[n:n:len(m.usages)]
}

func (f *former) fail(err error) {
	if f.err == nil {
		f.err = err
	}
}
