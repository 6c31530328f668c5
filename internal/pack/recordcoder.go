package pack

import (
	"errors"
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

var errForm = errors.New("malformed record")

// recordCoder codes the records of one chapter, in the direction of its coder.
type recordCoder struct {
	*state
	c *coder

	// bodies are the remaining bodies of a writer.
	bodies []byte
	// laid has the bodies in the content, by kind: all so far for a writer, the remaining
	// ones for a reader, which records the offset and size of each.
	laid          [bodyKinds][]byte
	begins        [bodyKinds]int64 // of the remaining bodies, in the content
	places, sizes []int64
	// text is the text of the chapter: all so far for a writer, the rest for a reader.
	text []byte
	// id returns the id with a number, and number the number of an id, a new one if
	// necessary.
	id     func(number uint32) (newID, error)
	number func(id [16]byte) uint32
	// look returns the number of an id, or 0, for a writer.
	look func(id [16]byte) uint32
	// derive records the source that an id is derived from, for a writer. It returns false
	// if a reader would not find it.
	derive func(id [16]byte, source string) bool

	arena arena

	commit *commit
	used   int          // number of usages of the commit so far
	names  []contentRef // content named by the commit so far
	err    error
}

// arena allocates records for a reader, several at a time: a chapter is cached as a whole.
type arena struct {
	blocks []structure.Block
	spans  []structure.Span
	usages []structure.Usage
}

// maxArena is the largest number of records that are allocated together.
const maxArena = 32

// next returns the next element of an arena, which it grows if necessary.
func next[T any](of *[]T) *T {
	if len(*of) == cap(*of) {
		*of = make([]T, 0, min(2*cap(*of)+1, maxArena))
	}
	*of = (*of)[:len(*of)+1]
	return &(*of)[len(*of)-1]
}

// usage returns an empty slice with capacity for one usage.
func (m *arena) usage() []structure.Usage {
	next(&m.usages)
	n := len(m.usages) - 1
	return m.usages[n:n:len(m.usages)]
}

func (f *recordCoder) fail(err error) {
	if f.err == nil {
		f.err = err
	}
}
