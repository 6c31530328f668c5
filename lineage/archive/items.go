package archive

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"runtime"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/internal/scratch"
)

// Items yields the values of the input: the elements of an outer array, or consecutive values as in JSON lines. Each
// is valid JSON. A value that is damaged or too large is reported as a *Damage.
func (in *Input) Items(ctx context.Context) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		s := splitter{r: in.reader, limit: in.limits.Item, inMemory: in.inMemory, at: Position{File: in.place()}}
		if s.begin() != nil {
			return // empty
		}
		for {
			if err := context.Cause(ctx); err != nil {
				yield(Item{}, err)
				return
			}
			text, err := s.next()
			if err == io.EOF {
				return
			}
			var damage *Damage
			if exceeded := in.guard.item(); exceeded != nil && (err == nil || errors.As(err, &damage)) {
				err, damage = exceeded, nil
			}
			if err != nil && !errors.As(err, &damage) {
				yield(Item{}, in.Unreadable(s.at, err))
				return
			}
			item := Item{At: s.at, objects: in.limits.Objects, text: text}
			if err == nil {
				item.Raw = text.Bytes()
				if bad := item.Valid(); bad != nil {
					err = Damaged(s.at, bad)
				}
			}
			if err != nil {
				if !yield(Item{}, err) || s.lost {
					return
				}
				continue
			}
			if !yield(item, nil) {
				return
			}
			runtime.KeepAlive(text)
		}
	}
}

// splitter splits a stream of JSON into values by their brackets. It holds one value.
type splitter struct {
	r        *bufio.Reader
	limit    int64
	inMemory int      // size from which on a value is in a file, 0 for none
	at       Position // of the last value returned
	offset   int64
	array    bool // the values are elements of an array
	lost     bool // the rest cannot be split
}

// begin reads up to the first value.
func (s *splitter) begin() error {
	if mark, _ := s.r.Peek(3); bytes.Equal(mark, byteOrderMark) {
		s.skip(3)
	}
	c, err := s.peek()
	if err == nil && c == '[' {
		s.array = true
		s.skip(1)
	}
	return err
}

// peek returns the next byte that is not whitespace, without consuming it.
func (s *splitter) peek() (byte, error) {
	for {
		c, err := s.r.ReadByte()
		if err != nil {
			return 0, err
		}
		if c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return c, s.r.UnreadByte()
		}
		s.offset++
	}
}

func (s *splitter) skip(n int) {
	n, _ = s.r.Discard(n)
	s.offset += int64(n)
}

// next returns the next value, io.EOF after the last.
func (s *splitter) next() (*scratch.Text, error) {
	for {
		c, err := s.peek()
		if err == io.EOF && s.array {
			return nil, s.lose("the array does not end")
		}
		if err != nil {
			return nil, err
		}
		if c == ',' {
			s.skip(1)
			continue
		}
		if c == ']' && s.array {
			s.skip(1)
			s.array = false
			continue // values may follow the array; another array counts as a value
		}
		break
	}
	s.at.Item++
	s.at.Offset = s.offset
	return s.value()
}

// lose reports damage after which the rest cannot be split.
func (s *splitter) lose(what string) error {
	s.lost = true
	at := s.at
	at.Offset = s.offset
	return Damaged(at, Malformed("JSON: %s; what follows cannot be read", what))
}

// value reads a value, which begins with the next byte.
func (s *splitter) value() (*scratch.Text, error) {
	w := scratch.TextWriter{Most: s.inMemory}
	defer w.Close()
	var scan valueScan
	size := int64(0)
	for !scan.done {
		buf, err := s.r.Peek(max(1, s.r.Buffered()))
		if len(buf) == 0 && (err == nil || err == io.EOF) {
			if scan.inString || scan.depth > 0 {
				return nil, s.lose("the value does not end")
			}
			break // of a scalar
		}
		if len(buf) == 0 {
			return nil, err
		}
		n := scan.next(buf)
		if scan.unopened {
			return nil, s.lose("a closing bracket has no opening one")
		}
		size += int64(n)
		s.offset += int64(n)
		if size <= s.limit {
			w.Write(buf[:n])
		} else {
			w.Close()
			w = scratch.TextWriter{}
		}
		if _, err := s.r.Discard(n); err != nil {
			return nil, err
		}
	}
	switch {
	case scan.deepest > rawjson.MaxDepth:
		return nil, Damaged(s.at, fmt.Errorf("value: %w", ErrTooDeep))
	case size > s.limit:
		return nil, Damaged(s.at, TooLarge("value", size, s.limit))
	}
	return w.Text()
}

// valueScan finds the end of a value in consecutive parts of a text.
type valueScan struct {
	depth, deepest            int // of open brackets
	inString, escaped, scalar bool
	done                      bool // the end was found
	unopened                  bool // there is a closing bracket without an opening one
}

// next scans a part, and returns how much of it belongs to the value.
func (v *valueScan) next(buf []byte) (n int) {
	for n < len(buf) && !v.done {
		if v.inString {
			n = v.string(buf, n)
			continue
		}
		switch c := buf[n]; c {
		case '"', '{', '[':
			if v.scalar {
				v.done = true
				return n
			}
			if c == '"' {
				v.inString = true
			} else {
				v.depth++
				v.deepest = max(v.deepest, v.depth)
			}
		case '}', ']':
			if v.depth == 0 {
				v.done, v.unopened = v.scalar, !v.scalar
				return n
			}
			v.depth--
			v.done = v.depth == 0
		case ',', ' ', '\n', '\t', '\r':
			if v.depth == 0 {
				v.done = true
				return n
			}
		default:
			v.scalar = v.depth == 0
		}
		n++
	}
	return n
}

// string scans a string from a place in it, and returns the place after it, or the end of the part.
func (v *valueScan) string(buf []byte, n int) int {
	quote := -1 // position of the next one, if known
	for n < len(buf) {
		switch c := buf[n]; {
		case v.escaped:
			v.escaped = false
		case c == '\\':
			v.escaped = true
		case c == '"':
			v.inString = false
			v.done = v.depth == 0
			return n + 1
		default:
			if quote < n {
				if quote = bytes.IndexByte(buf[n:], '"'); quote < 0 {
					quote = len(buf)
				} else {
					quote += n
				}
			}
			if k := bytes.IndexByte(buf[n:quote], '\\'); k >= 0 {
				n += k
			} else {
				n = quote
			}
			continue
		}
		n++
	}
	return n
}
