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
		at := Position{File: in.place()}
		var offset int64
		for {
			if err := context.Cause(ctx); err != nil {
				yield(Item{}, err)
				return
			}
			if in.feed != nil && in.feed.size >= PartBytes && !in.feed.pause(false, yield) {
				return
			}
			text, size, err := readLine(in.reader, in.limits.Item, in.inMemory)
			var line []byte
			if text != nil {
				line = text.Bytes()
			}
			if in.feed != nil && size == 0 && err == io.EOF {
				if !in.feed.pause(true, yield) {
					return
				}
				continue
			}
			at.Line++
			if in.feed != nil {
				in.feed.line(at.Line, line)
			}
			at.Offset = offset
			offset += size
			if size > 0 || err == nil {
				switch trimmed := trimLine(line); {
				case line == nil:
					if !yield(Item{}, Damaged(at, TooLarge("line", size, in.limits.Item))) {
						return
					}
				case len(trimmed) > 0:
					at.Item++
					if at.Line == 1 {
						trimmed = bytes.TrimPrefix(trimmed, byteOrderMark)
					}
					if err := in.guard.item(); err != nil {
						yield(Item{}, in.Unreadable(at, err))
						return
					}
					if !yield(Item{Raw: trimmed, At: at, objects: in.limits.Objects, open: err == io.EOF, feed: in.feed, text: text}, nil) {
						return
					}
				}
			}
			runtime.KeepAlive(text)
			switch {
			case err == nil || err == io.EOF && in.feed != nil:
			case err == io.EOF:
				return
			default:
				yield(Item{}, in.Unreadable(at, err))
				return
			}
		}
	}
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
