package archive

import (
	"context"
	"io"
)

// feed is what an input that grows is read from: one reader after another. The input has ended for now where a
// reader ends.
type feed struct {
	ctx  context.Context // of the current Read
	from io.Reader       // nil at its end
	err  error           // of from
	// read is the number of lines in the current Read, size their memory since the last pause, and waiting that of
	// those which are not placed. Lines beyond known are kept in lines until they are placed, if keep is set.
	read    int64
	size    int64
	waiting int64
	known   int64
	keep    bool
	lines   []Line
	// paused is set from a pause on until reading continues, drained if all was read.
	paused, drained bool
}

func (f *feed) Read(p []byte) (int, error) {
	if f.from == nil {
		return 0, io.EOF
	}
	n, err := 0, context.Cause(f.ctx)
	if err == nil {
		n, err = f.from.Read(p)
	}
	switch err {
	case nil:
	case io.EOF:
		f.from = nil
	default:
		f.err = err
	}
	return n, err
}

// line records a line.
func (f *feed) line(number int64, raw []byte) {
	f.read++
	f.size += lineMemory + int64(len(raw))
	if f.keep && number > f.known {
		f.lines = append(f.lines, Line{Number: number, Raw: raw})
	}
}

// take returns the lines that were kept.
func (f *feed) take() []Line {
	lines := f.lines
	f.lines, f.waiting = nil, 0
	return lines
}

// lineMemory is about what a line takes besides its bytes.
const lineMemory = 64

// pause yields a pause, and reports whether more is to be read after it.
func (f *feed) pause(drained bool, yield func(Item, error) bool) bool {
	f.paused, f.drained = true, drained
	f.size, f.waiting = 0, f.waiting+f.size
	return yield(Item{Pause: true}, nil) && !f.paused
}
