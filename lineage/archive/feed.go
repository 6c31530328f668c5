package archive

import (
	"context"
	"io"
)

// PartBytes and PartNodes are the approximate size of a part of a conversation that is yielded before its end.
const (
	PartBytes = 4 << 20
	PartNodes = 4096
)

// Feed joins several readers into the contents of one input that grows. At the end of a reader the input has ended
// for now. The format yields what it has read at each pause: at the end of a reader, and after about PartBytes.
type Feed struct {
	ctx  context.Context // of the current reader
	from io.Reader       // nil at the end of the reader
	err  error           // of the current reader, except io.EOF
	// read counts the lines of the current reader. size is their memory since the last pause, and waiting is the
	// memory of earlier lines that Take has not returned. If keep is set, lines after the first known ones are kept
	// until Take.
	read    int64
	size    int64
	waiting int64
	known   int64
	keep    bool
	lines   []RawLine
	// paused is set from a pause until Resume. drained is set if the pause is at the end of the current reader.
	paused, drained bool
}

// RawLine is a line of an input that grows.
type RawLine struct {
	// Number is the number of the line, from 1.
	Number int64
	// Raw is the line with its end, byte for byte. It is nil if the line is larger than Limits.Item.
	Raw []byte
	// Valid is set if the line was found to be JSON, apart from a byte order mark and white space around it.
	Valid bool
}

// NewFeed returns a feed. If keep is set, it keeps lines until Take returns them.
func NewFeed(keep bool) *Feed { return &Feed{keep: keep} }

// Known sets the number of first lines that are not kept.
func (f *Feed) Known(lines int64) { f.known = lines }

// Continue sets the next reader.
func (f *Feed) Continue(ctx context.Context, r io.Reader) { f.ctx, f.from, f.read = ctx, r, 0 }

// Err returns the error of the current reader, other than its end.
func (f *Feed) Err() error { return f.err }

// Ended reports whether the current reader was read to its end.
func (f *Feed) Ended() bool { return f.from == nil }

// Lines returns the number of lines read from the current reader.
func (f *Feed) Lines() int64 { return f.read }

// Waiting returns the memory of lines before the last pause that Take has not returned.
func (f *Feed) Waiting() int64 { return f.waiting }

// Paused reports whether the format has paused, and whether it paused at the end of the reader.
func (f *Feed) Paused() (paused, drained bool) { return f.paused, f.paused && f.drained }

// Resume lets the format continue after a pause.
func (f *Feed) Resume() { f.paused = false }

// Take returns the lines kept since the last Take.
func (f *Feed) Take() []RawLine {
	lines := f.lines
	f.lines, f.waiting = nil, 0
	return lines
}

// Read implements io.Reader.
func (f *Feed) Read(p []byte) (int, error) {
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
func (f *Feed) line(number int64, raw []byte) {
	f.read++
	f.size += lineMemory + int64(len(raw))
	if f.keep && number > f.known {
		f.lines = append(f.lines, RawLine{Number: number, Raw: raw})
	}
}

// valid records that the current line is JSON.
func (f *Feed) valid(number int64) {
	if last := len(f.lines) - 1; last >= 0 && f.lines[last].Number == number {
		f.lines[last].Valid = true
	}
}

// lineMemory is the approximate memory of a line without its bytes.
const lineMemory = 64
