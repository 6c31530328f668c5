package archive

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path"
	"slices"
	"strings"
)

// Input is a file of an archive, or several that a format reads together.
type Input struct {
	// Name is the file's path in the archive, with slashes; empty for a stream. For files read
	// together it is that of their folder.
	Name string
	// Files are the names of files read together.
	Files []string

	reader   *bufio.Reader // decompressed
	openFile func(ctx context.Context, name string) (io.ReadCloser, error)
	at       string // its name before decompression, for reports; empty if equal to Name
	path     string // on disk, if the file is not compressed
	limits   Limits
	guard    *guard // nil if it is neither compressed nor a database
	folder   string // the name of the folder, for files that are read together
	format   string // that grouped the files
	feed     *feed  // what the reader reads, if the input grows
	rows     bool   // are wanted
}

// Item is an item of an input.
type Item struct {
	// Raw is the item's text. The caller may keep it.
	Raw []byte
	At  Position
	// Pause is set, in an input that grows, where a format that Grows has to yield what it has read.
	Pause bool

	objects int64 // limit of objects
	open    bool  // a last line without an end
}

// Valid returns an error unless the item is valid JSON within the limits.
func (i Item) Valid() error {
	if err := checkObjects(i.Raw, i.objects); err != nil {
		return err
	}
	return checkJSON(i.Raw)
}

// beingWritten returns a repair for a line that ends in the middle of its JSON because its program is
// still writing it, nil for other damage.
func (i Item) beingWritten(bad error) *Damage {
	if !i.open || !errors.Is(bad, ErrMalformed) {
		return nil
	}
	return damaged(i.At, malformed("the last line is not complete; an import reads it once it is"))
}

// NewInput returns an input that reads from r, for tests of formats.
func NewInput(name string, r io.Reader) *Input {
	return &Input{Name: name, reader: bufio.NewReaderSize(r, HeadSize), limits: Limits{}.orDefault()}
}

// Head returns the beginning of the input.
func (in *Input) Head() Head {
	head, _ := in.reader.Peek(HeadSize) // reading reports errors
	return Head{Name: baseName(in.Name), Bytes: head}
}

// place returns the name of the input for reports: that of the file containing it, before
// decompression.
func (in *Input) place() string { return cmp.Or(in.at, in.Name) }

// title returns the path of the file in the source, without extension.
func (in *Input) title() string {
	if in.folder != "" || in.Name == "-" {
		return ""
	}
	ext := path.Ext(in.Name)
	if strings.ContainsFunc(strings.TrimPrefix(ext, "."), func(r rune) bool { return r < 'a' || r > 'z' }) {
		ext = "" // part of a version or name
	}
	return strings.ToValidUTF8(strings.TrimSuffix(in.Name, ext), "\uFFFD")
}

// Open returns the decompressed input. It can be read once.
func (in *Input) Open() io.Reader { return in.reader }

// OpenFile opens one of Files.
func (in *Input) OpenFile(ctx context.Context, name string) (io.ReadCloser, error) {
	if in.openFile == nil || !slices.Contains(in.Files, name) {
		return nil, fmt.Errorf("file %q of %q: %w", name, in.Name, os.ErrNotExist)
	}
	return in.openFile(ctx, name)
}

// WantsRows reports whether a format that reads a database fills Conversation.Rows.
func (in *Input) WantsRows() bool { return in.rows }

// MaxItem is the maximum size of an item.
func (in *Input) MaxItem() int64 { return in.limits.Item }

// MaxObjects is the maximum number of JSON objects in an item.
func (in *Input) MaxObjects() int64 { return in.limits.Objects }

// Expand counts bytes that a format reads from a database of the given size. Conversations can refer
// to the same row many times: beyond the limits of compressed files it returns a *LimitError.
func (in *Input) Expand(n, size int64) error {
	if in.guard == nil {
		in.guard = &guard{limits: in.limits, in: func() int64 { return size }}
	}
	return in.guard.expand(n)
}

// LocalFile returns the path of a file with the input, for libraries that need one: the original or
// a temporary copy. done removes the copy.
func (in *Input) LocalFile(ctx context.Context) (path string, done func(), err error) {
	if in.path != "" {
		return in.path, func() {}, nil
	}
	f, err := spool(ctx, in.reader)
	if err != nil {
		return "", nil, err
	}
	return f.Name(), func() { f.Close(); os.Remove(f.Name()) }, nil
}

// tooLarge returns the error for a line or value larger than Limits.Item.
func tooLarge(what string, size, limit int64) error {
	return fmt.Errorf("%s of %d bytes: %w", what, size, &LimitError{Limit: "item", Most: limit, What: "bytes", Err: ErrTooLarge})
}

// spool copies r to a temporary file.
func spool(ctx context.Context, r io.Reader) (*os.File, error) {
	f, err := os.CreateTemp("", "lineage-import-*")
	if err != nil {
		return nil, err
	}
	if _, err = io.Copy(f, &cancelReader{ctx, r}); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
		os.Remove(f.Name())
		return nil, err
	}
	return f, nil
}

type cancelReader struct {
	ctx context.Context
	r   io.Reader
}

func (r *cancelReader) Read(p []byte) (int, error) {
	if err := context.Cause(r.ctx); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

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
			if in.feed != nil && in.feed.size >= partBytes && !in.feed.pause(false, yield) {
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
					if !yield(Item{}, damaged(at, tooLarge("line", size, in.limits.Item))) {
						return
					}
				case len(trimmed) > 0:
					at.Item++
					if at.Line == 1 {
						trimmed = bytes.TrimPrefix(trimmed, byteOrderMark)
					}
					if err := in.guard.item(); err != nil {
						yield(Item{}, in.unreadable(at, err))
						return
					}
					if !yield(Item{Raw: trimmed, At: at, objects: in.limits.Objects, open: err == io.EOF}, nil) {
						return
					}
				}
			}
			switch {
			case err == nil || err == io.EOF && in.feed != nil:
			case err == io.EOF:
				return
			default:
				yield(Item{}, in.unreadable(at, err))
				return
			}
		}
	}
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// unreadable returns the error for an input that cannot be read: a damage, so that other inputs are
// still read, unless the caller has cancelled.
func (in *Input) unreadable(at Position, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	at.Inside = "the rest of the input"
	return damaged(at, err)
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

// Items yields the values of the input: the elements of an outer array, or consecutive values as in
// JSON lines. Each is valid JSON. A damaged value or one that is too large is a *Damage.
func (in *Input) Items(ctx context.Context) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		s := splitter{r: in.reader, limit: in.limits.Item, at: Position{File: in.place()}}
		if s.begin() != nil {
			return // empty
		}
		for {
			if err := context.Cause(ctx); err != nil {
				yield(Item{}, err)
				return
			}
			raw, err := s.next()
			if err == io.EOF {
				return
			}
			var damage *Damage
			if over := in.guard.item(); over != nil && (err == nil || errors.As(err, &damage)) {
				err, damage = over, nil
			}
			if err != nil && !errors.As(err, &damage) {
				yield(Item{}, in.unreadable(s.at, err))
				return
			}
			item := Item{Raw: raw, At: s.at, objects: in.limits.Objects}
			if err == nil {
				if bad := item.Valid(); bad != nil {
					err = damaged(s.at, bad)
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
		}
	}
}

// splitter splits a stream of JSON into values by their brackets. It holds one value.
type splitter struct {
	r      *bufio.Reader
	limit  int64
	at     Position // of the last value returned
	offset int64
	array  bool // the values are elements of an array
	lost   bool // the rest cannot be split
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
func (s *splitter) next() ([]byte, error) {
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
	raw, size, depth, err := s.value()
	switch {
	case err == io.EOF && depth > 0:
		return nil, s.lose("the value does not end")
	case err != nil && err != io.EOF:
		return nil, err
	case depth < 0:
		return nil, s.lose("a closing bracket has no opening one")
	case depth > maxDepth:
		return nil, damaged(s.at, fmt.Errorf("value: %w", ErrTooDeep))
	case raw == nil:
		return nil, damaged(s.at, tooLarge("value", size, s.limit))
	}
	return raw, nil
}

// lose reports damage after which the rest cannot be split.
func (s *splitter) lose(what string) error {
	s.lost = true
	at := s.at
	at.Offset = s.offset
	return damaged(at, malformed("JSON: %s; what follows cannot be read", what))
}

// value reads a value, nil if it exceeds the limit. depth is the number of open brackets at the
// end, or when it exceeded the maximum.
func (s *splitter) value() (raw []byte, size int64, depth int, err error) {
	deepest := 0
	inString, escaped, scalar := false, false, false
	for {
		buf, err := s.r.Peek(max(1, s.r.Buffered()))
		if len(buf) == 0 {
			if err == nil {
				err = io.EOF
			}
			if inString {
				depth++
			}
			return raw, size, depth, err
		}
		n, quote, done := 0, -1, false // quote is the position of the next one, if known
		for n < len(buf) && !done {
			c := buf[n]
			if inString {
				switch {
				case escaped:
					escaped = false
				case c == '\\':
					escaped = true
				case c == '"':
					inString = false
					done = depth == 0
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
				continue
			}
			switch c {
			case '"':
				if scalar {
					done = true
					continue
				}
				inString = true
			case '{', '[':
				if scalar {
					done = true
					continue
				}
				depth++
				deepest = max(deepest, depth)
			case '}', ']':
				if depth == 0 {
					if scalar {
						done = true
						continue
					}
					return nil, size, -1, nil
				}
				depth--
				done = depth == 0
			case ',', ' ', '\n', '\t', '\r':
				if depth == 0 {
					done = true
					continue
				}
			default:
				scalar = depth == 0
			}
			n++
		}
		size += int64(n)
		s.offset += int64(n)
		switch {
		case size > s.limit:
			raw = nil
		case raw == nil && size > int64(n):
			// The limit is already exceeded, or this is the first piece.
		default:
			raw = append(raw, buf[:n]...)
		}
		if _, err := s.r.Discard(n); err != nil {
			return nil, size, depth, err
		}
		if done {
			if deepest > maxDepth {
				depth = deepest
			}
			return raw, size, depth, nil
		}
	}
}
