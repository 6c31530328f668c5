package archive

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"iter"
	"runtime"

	"github.com/lineage-store/lineage/internal/scratch"
)

// Lines yields the lines of the input that are not blank, and pauses. A line that is too long is a *Damage.
func (in *Input) Lines(ctx context.Context) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		r := lineReader{Input: in, yield: yield, at: Position{File: in.place()}}
		for r.next(ctx) {
		}
	}
}

// lineReader reads the lines of an input and yields them.
type lineReader struct {
	*Input
	yield  func(Item, error) bool
	at     Position // of the line
	offset int64    // of the next line
}

// next reads a line or pauses. It reports whether to continue reading.
func (r *lineReader) next(ctx context.Context) bool {
	if err := context.Cause(ctx); err != nil {
		r.yield(Item{}, err)
		return false
	}
	if r.feed != nil && r.feed.size >= PartBytes && !r.feed.pause(false, r.yield) {
		return false
	}
	text, size, err := readLine(r.reader, r.limits.Item, r.inMemory)
	defer runtime.KeepAlive(text) // the line is its memory
	ended := err == io.EOF
	if r.feed != nil && ended && size == 0 {
		return r.feed.pause(true, r.yield)
	}
	var line []byte
	if text != nil {
		line = text.Bytes()
	}
	r.at.Line++
	if r.feed != nil {
		r.feed.line(r.at.Line, line)
	}
	r.at.Offset = r.offset
	r.offset += size
	if (size > 0 || err == nil) && !r.yieldLine(line, size, ended, text) {
		return false
	}
	if err != nil && !ended {
		r.yield(Item{}, r.Unreadable(r.at, err))
		return false
	}
	return !ended || r.feed != nil
}

// yieldLine yields a line unless it is blank. The line is nil if it is too long. open is set if it has no end. It reports whether
// to continue reading.
func (r *lineReader) yieldLine(line []byte, size int64, open bool, text *scratch.Text) bool {
	if line == nil {
		return r.yield(Item{}, Damaged(r.at, TooLarge("line", size, r.limits.Item)))
	}
	line = trimLine(line)
	if len(line) == 0 {
		return true
	}
	r.at.Item++
	if r.at.Line == 1 {
		line = bytes.TrimPrefix(line, byteOrderMark)
	}
	if err := r.guard.item(); err != nil {
		r.yield(Item{}, r.Unreadable(r.at, err))
		return false
	}
	return r.yield(Item{Raw: line, At: r.at, objects: r.limits.Objects, open: open, feed: r.feed, text: text}, nil)
}

// trimLine returns a line without space around it, and without zero bytes before it: after a power loss, some file systems
// leave them at the end of a file, and the next line follows them. A line of zero bytes only keeps them.
func trimLine(line []byte) []byte {
	line = bytes.TrimSpace(line)
	if text := bytes.TrimSpace(bytes.TrimLeft(line, "\x00")); len(text) > 0 {
		return text
	}
	return line
}

// pause yields a pause. It reports whether to continue reading.
func (f *Feed) pause(drained bool, yield func(Item, error) bool) bool {
	f.paused, f.drained = true, drained
	f.size, f.waiting = 0, f.waiting+f.size
	return yield(Item{Pause: true}, nil) && !f.paused
}

// readLine reads a line including its end. If it exceeds the limit, it is skipped and nil is
// returned. A line of more than inMemory bytes is in a file, if that is not 0.
func readLine(r *bufio.Reader, limit int64, inMemory int) (text *scratch.Text, size int64, err error) {
	w := scratch.TextWriter{Most: inMemory}
	defer w.Close()
	for {
		part, err := r.ReadSlice('\n')
		if size += int64(len(part)); size <= limit {
			w.Write(part)
		} else {
			w.Close()
			w = scratch.TextWriter{}
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		if size <= limit {
			var lost error
			if text, lost = w.Text(); lost != nil {
				err = lost
			}
		}
		return text, size, err
	}
}
