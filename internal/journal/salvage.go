package journal

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/lineage-store/lineage/internal/pack"
	"github.com/lineage-store/lineage/internal/pack/layout"
	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage/backend"
)

// LostPart is a part of a journal's files that cannot be read.
type LostPart struct {
	File   string `json:"file"`
	Offset int64  `json:"offset"`
	Length int64  `json:"length"` // 0 if unknown
	What   string `json:"problem"`
}

// String returns the place and the problem.
func (l LostPart) String() string {
	if l.Length > 0 {
		return fmt.Sprintf("%s, bytes %d to %d: %s", l.File, l.Offset, l.Offset+l.Length-1, l.What)
	}
	if l.Offset > 0 {
		return fmt.Sprintf("%s, from byte %d on: %s", l.File, l.Offset, l.What)
	}
	return fmt.Sprintf("%s: %s", l.File, l.What)
}

// Salvage visits in order the readable commits in a journal's files, regardless of
// damaged or missing parts, and calls lost with each of these. Frames are accepted by
// their checksums. It changes nothing and needs no index; the journal must not be
// open. An error of visit ends it. It returns the number of the last commit of which
// there is any evidence.
func Salvage(fsys vfs.FS, dir string, visit func(store [16]byte, f Frame) error, lost func(LostPart)) (last uint64, err error) {
	names, err := fsys.List(dir)
	if err != nil {
		return 0, fmt.Errorf("salvage journal: %w", err)
	}
	var before LostPart
	s := salvager{fs: fsys, lost: func(l LostPart) {
		if l != before { // several parts may report the same loss
			lost(l)
		}
		before = l
	}}
	files := salvageOrder(dir, names)
	for len(files) > 0 {
		n := overlapping(files)
		s.last = n == len(files)
		if err := s.merge(files[:n], visit); err != nil {
			return 0, err
		}
		files = files[n:]
	}
	if s.number == 0 && s.newer != nil {
		return 0, s.newer
	}
	return max(s.number, s.known), nil
}

// newerFormat returns an error about a format of another program version, or nil.
func newerFormat(name string, err error) error {
	if errors.Is(err, backend.ErrNewerFormat) || errors.Is(err, backend.ErrOlderFormat) {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

type salvageFile struct {
	name        string
	first, last uint32 // segments
	generation  int    // of a pack
	packed      bool
}

// salvageOrder returns the files by their first segment; of overlapping files, the one
// written last comes first.
func salvageOrder(dir string, names []string) (files []salvageFile) {
	for _, name := range names {
		f := salvageFile{name: filepath.Join(dir, name)}
		if number, ok := segmentNumber(name); ok {
			f.first, f.last = number, number
		} else if f.first, f.last, f.generation, f.packed = layout.ParseName(name); !f.packed {
			continue
		}
		files = append(files, f)
	}
	slices.SortFunc(files, func(a, b salvageFile) int {
		return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(b.last, a.last), cmp.Compare(b.generation, a.generation), strings.Compare(a.name, b.name))
	})
	return files
}

// overlapping returns how many files at the start overlap, such as a pack and its
// source segments after a crash.
func overlapping(files []salvageFile) int {
	n, last := 1, files[0].last
	for n < len(files) && files[n].first <= last {
		last = max(last, files[n].last)
		n++
	}
	return n
}

// salvager is the state of a salvage.
type salvager struct {
	fs     vfs.FS
	lost   func(LostPart)
	store  [16]byte
	number uint64 // of the last visited commit
	known  uint64 // number of the last commit with any evidence
	newer  error  // why a file seems to have a newer format, or to be damaged there
	last   bool   // these are the last files
}

// merge visits the commits of overlapping files, each once.
func (s *salvager) merge(files []salvageFile, visit func([16]byte, Frame) error) error {
	type source struct {
		next func() (Frame, bool)
		head Frame
	}
	var sources []*source
	for _, f := range files {
		next, stop := iter.Pull(s.commits(f))
		defer stop()
		if head, ok := next(); ok {
			sources = append(sources, &source{next, head})
		}
	}
	for len(sources) > 0 {
		first := slices.MinFunc(sources, func(a, b *source) int { return cmp.Compare(a.head.Number, b.head.Number) })
		if f := first.head; f.Number > s.number {
			s.number = f.Number
			if err := visit(s.store, f); err != nil {
				return err
			}
		}
		var ok bool
		if first.head, ok = first.next(); !ok {
			sources = slices.DeleteFunc(sources, func(x *source) bool { return x == first })
		}
	}
	return nil
}

// commits yields the readable commits of a file in order.
func (s *salvager) commits(f salvageFile) iter.Seq[Frame] {
	return func(yield func(Frame) bool) {
		if f.packed {
			s.pack(f.name, yield)
		} else {
			s.segment(f.name, f.first, yield)
		}
	}
}

// belongs reports whether a file belongs to the same store as those before it.
func (s *salvager) belongs(name string, store [16]byte) bool {
	if s.store == [16]byte{} {
		s.store = store
	}
	if s.store == store {
		return true
	}
	s.lost(LostPart{File: name, What: "belongs to another store"})
	return false
}

// fault reports an error as a loss.
func (s *salvager) fault(name string, err error) {
	s.newer = cmp.Or(s.newer, newerFormat(name, err))
	var damage *backend.CorruptError
	if errors.As(err, &damage) {
		s.lost(LostPart{File: name, Offset: damage.Offset, What: damage.What})
	} else {
		s.lost(LostPart{File: name, What: err.Error()})
	}
}

func (s *salvager) pack(name string, yield func(Frame) bool) {
	f, err := s.fs.Open(name)
	if err != nil {
		s.fault(name, err)
		return
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		s.fault(name, err)
		return
	}
	p, err := pack.OpenDamaged(f, size, name, pack.NewCache(defaultCache))
	if err != nil {
		s.fault(name, err)
		return
	}
	if !s.belongs(name, p.Store) {
		return
	}
	s.known = max(s.known, p.LastCommit)
	for f, err := range p.Salvage() {
		if err != nil {
			s.fault(name, err)
		} else if !yield(packed(f)) {
			return
		}
	}
}

func (s *salvager) segment(name string, number uint32, yield func(Frame) bool) {
	b, whole, err := s.read(name)
	if err != nil {
		s.fault(name, err)
		return
	}
	h, err := decodeHeader(b)
	switch {
	case errors.Is(err, errNoHeader) && s.last && len(b) <= headerSize:
		return // its creation was interrupted
	case err == nil && h.segment != number:
		err = fmt.Errorf("holds segment %d", h.segment)
	}
	if err != nil { // the frame checksums depend on the header
		s.newer = cmp.Or(s.newer, newerFormat(name, err))
		s.lost(LostPart{File: name, Length: int64(len(b)), What: err.Error()})
		return
	}
	if s.belongs(name, h.store) {
		s.known = max(s.known, h.first-1)
		s.frames(name, b, h, whole, yield)
	}
}

// frames yields the commits of a segment. After damage it searches every byte for the
// next frame; the salt distinguishes frames from bytes of messages.
func (s *salvager) frames(name string, b []byte, h header, whole bool, yield func(Frame) bool) {
	salt := crc32.Update(0, castagnoli, h.salt[:])
	sums := sync.OnceValue(func() *rangeSums { return newRangeSums(b) })
	after := h.first - 1 // the last commit before
	for at := headerSize; at < len(b); {
		f, end := frameAt(b, at, salt)
		if end == 0 {
			var start int
			if f, start, end = sums().nextFrame(salt, at+1, at, after); end == 0 {
				// Reserved space is zeros.
				if rest := b[at:]; !whole || slices.ContainsFunc(rest, func(x byte) bool { return x != 0 }) {
					s.lost(LostPart{File: name, Offset: int64(at), Length: int64(len(rest)), What: "no valid frame, and none after it"})
				}
				return
			}
			s.lost(LostPart{File: name, Offset: int64(at), Length: int64(start - at), What: "no valid frame"})
			at = start
		}
		f.Position, f.End = Position{Segment: h.segment, Offset: int64(at)}, int64(end)
		f.PayloadOffset += int64(at)
		if !f.Mark && f.Number > after && !yield(f) {
			return
		}
		at, after = end, max(after, f.Number)
		s.known = max(s.known, f.Number) // a mark has the number of the commit before it
	}
}

// frameAt returns the frame at an offset and its end, or 0.
func frameAt(b []byte, at int, salt uint32) (Frame, int) {
	if len(b)-at < minFrame {
		return Frame{}, 0
	}
	size := frameSize(b[at:])
	if size == 0 || size > int64(len(b)-at) {
		return Frame{}, 0
	}
	end := at + int(size)
	f, ok := decodeFrame(b[at:end], salt)
	if !ok {
		return Frame{}, 0
	}
	return f, end
}

const (
	// salvageRead is the size of a read, and sectorRead the size after an error, so
	// that a bad sector loses only itself.
	salvageRead = 1 << 20
	sectorRead  = 4 << 10
	// maxZeros is the number of zeros after which a file is not read further: a
	// damaged file system can report any size, and large bodies are stored in chunks.
	maxZeros = 64 << 20
)

// read returns a file's bytes, with zeros for unreadable ones.
func (s *salvager) read(name string) (b []byte, whole bool, err error) {
	f, err := s.fs.Open(name)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, false, err
	}
	whole = true
	zeros, none := int64(0), make([]byte, salvageRead) // at the end of what was read
	for at := int64(0); at < size; at = int64(len(b)) {
		if zeros > maxZeros {
			s.lost(LostPart{File: name, Offset: at, Length: size - at, What: "not searched, because it follows too many zeros"})
			return b, false, nil
		}
		n := min(salvageRead, size-at)
		b = append(b, make([]byte, n)...)
		part := b[at:]
		if n, err := f.ReadAt(part, at); n < len(part) && !errors.Is(err, io.EOF) {
			whole = false
			s.sectors(f, name, part, at)
		}
		if zeros += n; !bytes.Equal(part, none[:n]) {
			zeros = 0
		}
	}
	return b, whole, nil
}

// sectors reads the readable sectors of a part of a file.
func (s *salvager) sectors(f vfs.File, name string, part []byte, at int64) {
	for sector := range slices.Chunk(part, sectorRead) {
		if n, err := f.ReadAt(sector, at); n < len(sector) && !errors.Is(err, io.EOF) {
			clear(sector[n:])
			s.lost(LostPart{File: name, Offset: at, Length: int64(len(sector)), What: err.Error()})
		}
		at += int64(len(sector))
	}
}
