package archive

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"iter"
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
			line, size, err := readLine(in.reader, in.limits.Item)
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
				switch trimmed := bytes.TrimSpace(line); {
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
					if !yield(Item{Raw: trimmed, At: at, objects: in.limits.Objects, open: err == io.EOF, feed: in.feed}, nil) {
						return
					}
				}
			}
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

// readLine reads a line including its end. If it exceeds the limit, it is skipped and nil is
// returned.
func readLine(r *bufio.Reader, limit int64) (line []byte, size int64, err error) {
	tooLong := false
	for {
		part, err := r.ReadSlice('\n')
		size += int64(len(part))
		switch {
		case size > limit:
			line, tooLong = nil, true
		case !tooLong:
			if line == nil {
				line = make([]byte, 0, len(part))
			}
			line = append(line, part...)
		}
		if err != bufio.ErrBufferFull {
			return line, size, err
		}
	}
}
