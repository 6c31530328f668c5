package content

import "io"

// InlineLimit is the size up to which a body is kept whole. Larger ones are cut.
const InlineLimit = 64 << 10

// Sizes of chunks in bytes. They decide where bodies are cut and must not change.
const (
	// MinChunk is the size below which only the last chunk of a body may be.
	MinChunk = 4 << 10
	// AverageChunk is the size that chunks are steered towards.
	AverageChunk = 16 << 10
	// MaxChunk is the size that no chunk exceeds.
	MaxChunk = 64 << 10
)

// A cut falls behind a byte where the rolling hash has none of a mask's bits. An
// even chance for the average size would take 14 bits. Two more before that size
// and two fewer after it (normalised chunking, level 2) bring sizes closer
// together. The bits are the topmost, which the last 64 bytes decide.
const (
	maskBelowAverage uint64 = (1<<16 - 1) << 48
	maskAboveAverage uint64 = (1<<12 - 1) << 52
)

const (
	// chunkerBuffer leaves room for several chunks, so that what is left over is
	// seldom moved to the front.
	chunkerBuffer = 4 * MaxChunk
	// maxEmptyReads is how often in a row a reader may return nothing.
	maxEmptyReads = 100
)

// Chunker cuts a stream into chunks by the FastCDC method. Equal bytes are cut
// at equal places, whatever the sizes of the reads they came in.
type Chunker struct {
	r          io.Reader
	buf        []byte
	start, end int   // what of buf is read and not yet returned
	err        error // why there is nothing more to read
}

// NewChunker returns a chunker over all that r has to give. It takes a fixed
// amount of memory.
func NewChunker(r io.Reader) *Chunker {
	return &Chunker{r: r, buf: make([]byte, chunkerBuffer)}
}

// Next returns the next chunk, which is never empty and stays as it is until the
// following call. At the end of the stream the error is io.EOF. Any other error
// is the reader's, and bytes that were read ahead of it are withheld.
func (c *Chunker) Next() ([]byte, error) {
	c.fill()
	if c.err != nil && c.err != io.EOF {
		return nil, c.err
	}
	if c.start == c.end {
		return nil, io.EOF
	}
	chunk := c.buf[c.start : c.start+cut(c.buf[c.start:c.end])]
	c.start += len(chunk)
	return chunk[:len(chunk):len(chunk)], nil
}

// fill reads until a chunk of the greatest size is there, or nothing more comes.
func (c *Chunker) fill() {
	if c.err != nil || c.end-c.start >= MaxChunk {
		return
	}
	c.end = copy(c.buf, c.buf[c.start:c.end])
	c.start = 0
	for empty := 0; c.err == nil && c.end < MaxChunk; {
		var n int
		n, c.err = c.r.Read(c.buf[c.end:])
		c.end += n
		if n > 0 {
			empty = 0
		} else if empty++; empty == maxEmptyReads && c.err == nil {
			c.err = io.ErrNoProgress
		}
	}
}

// cut returns the length of the first chunk of b. It looks at no more than
// MaxChunk bytes, and takes b for the end of the body when there are fewer.
func cut(b []byte) int {
	if len(b) <= MinChunk {
		return len(b)
	}
	b = b[:min(len(b), MaxChunk)]
	average := min(len(b), AverageChunk)
	var hash uint64
	for i, c := range b[MinChunk:average] {
		hash = hash<<1 + gear[c]
		if hash&maskBelowAverage == 0 {
			return MinChunk + i + 1
		}
	}
	for i, c := range b[average:] {
		hash = hash<<1 + gear[c]
		if hash&maskAboveAverage == 0 {
			return average + i + 1
		}
	}
	return len(b)
}
