package content

import "io"

// InlineLimit is the largest size of a body that is stored whole. Larger ones are
// cut into chunks.
const InlineLimit = 64 << 10

// Sizes of chunks in bytes. They determine the cuts and must not change.
const (
	// MinChunk is the least size of all chunks but the last of a body.
	MinChunk = 4 << 10
	// AverageChunk is the intended average size.
	AverageChunk = 16 << 10
	// MaxChunk is the largest size of a chunk.
	MaxChunk = 64 << 10
)

// A cut is made after a byte where the rolling hash has none of a mask's bits.
// For the average size, 14 bits would be needed. Two more bits below that size
// and two fewer above it (normalized chunking, level 2) reduce the variance. The
// topmost bits are used, because they depend on the last 64 bytes.
const (
	maskBelowAverage uint64 = (1<<16 - 1) << 48
	maskAboveAverage uint64 = (1<<12 - 1) << 52
)

const (
	// chunkerBuffer has room for several chunks, so that remaining bytes are
	// rarely moved.
	chunkerBuffer = 4 * MaxChunk
	// maxEmptyReads is the largest number of consecutive empty reads.
	maxEmptyReads = 100
)

// Chunker cuts a stream into chunks by the FastCDC method. The cuts depend only
// on the bytes, not on the sizes of reads.
type Chunker struct {
	r          io.Reader
	buf        []byte
	start, end int   // the unread part of buf
	err        error // the error that ended reading
}

// NewChunker returns a chunker of r. It uses a fixed amount of memory.
func NewChunker(r io.Reader) *Chunker {
	return &Chunker{r: r, buf: make([]byte, chunkerBuffer)}
}

// Next returns the next chunk, which is not empty and is valid until the next
// call. At the end of the stream it returns io.EOF. Any other error comes from
// the reader; bytes read before it are not returned.
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

// fill reads until a chunk of the largest size is available, or the stream ends.
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

// cut returns the length of the first chunk of b. It reads at most MaxChunk
// bytes; fewer are the end of the body.
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
