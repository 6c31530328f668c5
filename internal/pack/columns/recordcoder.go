package columns

import (
	"github.com/lineage-store/lineage/internal/pack/layout"
	"github.com/lineage-store/lineage/structure"
)

// recordCoder codes the records of one chapter, in the direction of its coder.
type recordCoder struct {
	*coderState
	c *coder

	// bodies are the remaining bodies of a writer.
	bodies []byte
	// laid has the bodies in the content, by kind: all so far for a writer, the remaining
	// ones for a reader, which records the offset and size of each.
	laid          [layout.BodyKinds][]byte
	begins        [layout.BodyKinds]int64 // of the remaining bodies, in the content
	places, sizes []int64
	// text is the text of the chapter: all so far for a writer, the rest for a reader.
	text []byte
	// id returns the id with a number, for a reader.
	id       func(number uint32) (ID, error)
	unplaced bool // a reader computes no places of frames and records
	// ids numbers the ids, for a writer.
	ids *IDs

	arena arena

	commit *Commit
	used   int          // number of usages of the commit so far
	names  []ContentRef // content named by the commit so far
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
func next[T any](elements *[]T) *T {
	if len(*elements) == cap(*elements) {
		*elements = make([]T, 0, min(2*cap(*elements)+1, maxArena))
	}
	*elements = (*elements)[:len(*elements)+1]
	return &(*elements)[len(*elements)-1]
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
