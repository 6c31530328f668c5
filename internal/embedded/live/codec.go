package live

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"slices"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

const (
	fileMagic   = "LINLIVES"
	fileVersion = 2
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errMalformed is returned for a file that is shorter or longer than its fields require.
var errMalformed = errors.New("the live set is malformed")

// codec writes the fields of a set, or reads them. After an error it does nothing.
type codec struct {
	out *bufio.Writer
	in  *bufio.Reader // nil when writing
	buf []byte
	err error
}

// Write writes the set of a store.
func Write(w io.Writer, store [16]byte, l *Set) error {
	sum := crc32.New(castagnoli)
	c := codec{out: bufio.NewWriterSize(io.MultiWriter(w, sum), 1<<20)}
	version := uint64(fileVersion)
	c.bytes([]byte(fileMagic))
	c.number(&version)
	c.bytes(store[:])
	c.set(l)
	if err := errors.Join(c.err, c.out.Flush()); err != nil {
		return err
	}
	_, err := w.Write(binary.LittleEndian.AppendUint32(nil, sum.Sum32()))
	return err
}

// Encode returns the set as bytes, with the store that it belongs to.
func (l *Set) Encode(store [16]byte) ([]byte, error) {
	var b bytes.Buffer
	err := Write(&b, store, l)
	return b.Bytes(), err
}

// Decode returns the set in bytes that must belong to a store. name describes the bytes in errors.
func Decode(b []byte, store [16]byte, name string) (*Set, error) {
	l, owner, err := Read(bytes.NewReader(b), int64(len(b)), name)
	if err == nil && owner != store {
		err = &backend.CorruptError{File: name, What: "belongs to another store"}
	}
	if err != nil {
		return nil, err
	}
	return l, nil
}

// ReadFile returns the set in a file and the id of its store. Without a file the set is nil.
func ReadFile(fsys vfs.FS, name string) (l *Set, store [16]byte, err error) {
	f, err := fsys.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, store, nil
	}
	if err != nil {
		return nil, store, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, store, err
	}
	return Read(f, size, name)
}

// Read returns the set in the first size bytes of a file, and the id of its store. It
// uses at most a small multiple of that size in memory.
func Read(f io.ReaderAt, size int64, name string) (l *Set, store [16]byte, err error) {
	fault := func(what string) error { return &backend.CorruptError{File: name, What: what} }
	body := io.NewSectionReader(f, 0, max(size-crc32.Size, 0))
	sum, stored := crc32.New(castagnoli), make([]byte, crc32.Size)
	if _, err := io.CopyBuffer(sum, body, make([]byte, 1<<20)); err != nil {
		return nil, store, err
	}
	if n, err := f.ReadAt(stored, body.Size()); n < len(stored) && !errors.Is(err, io.EOF) {
		return nil, store, err
	}
	if sum.Sum32() != binary.LittleEndian.Uint32(stored) {
		return nil, store, fault("the checksum is wrong")
	}
	c := codec{in: bufio.NewReaderSize(io.NewSectionReader(f, 0, body.Size()), 1<<20)}
	magic, version := make([]byte, len(fileMagic)), uint64(0)
	if c.bytes(magic); string(magic) != fileMagic {
		return nil, store, fault("not a live set")
	}
	if c.number(&version); version > fileVersion {
		return nil, store, fmt.Errorf("%s has version %d, this program reads %d: %w", name, version, fileVersion, backend.ErrNewerFormat)
	}
	c.bytes(store[:])
	l = newSet()
	c.set(l)
	if _, err := c.in.ReadByte(); err == nil {
		c.fail(errMalformed)
	}
	if c.err != nil {
		return nil, store, fault(c.err.Error())
	}
	return l, store, nil
}

// set writes or reads the fields in file order.
func (c *codec) set(l *Set) {
	none := func(*struct{}) {}
	c.number(&l.Until)
	codeIDs(c, l.runs, func(r *Run) {
		c.number(&r.Live)
		c.number(&r.End)
	})
	c.hashes(&l.contents)
	codeIDs(c, l.threads, none)
	codeIDs(c, l.contexts, c.beginning)
	codeIDs(c, l.remnants, c.beginning)
	codeIDs(c, l.sets, none)
	codeIDs(c, l.checkpoints, none)
	codeIDs(c, l.summaries, none)
	c.hashes(&l.values)
	codeIDs(c, l.reflog, c.number)
	codeIDs(c, l.cutReflog, c.number)
	codeIDs(c, l.deletedThreads, c.number)
	codeMap(c, l.erased, func(id *content.ID, _ *struct{}) { c.bytes(id[:]) })
	codeMap(c, l.stored, func(id *content.ID, commit *uint64) {
		c.bytes(id[:])
		c.number(commit)
	})
	codeIDs(c, l.deadRuns, c.ref)
}

func (c *codec) fail(err error) {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errMalformed
	}
	if c.err == nil {
		c.err = err
	}
}

func (c *codec) bytes(b []byte) {
	var err error
	switch {
	case c.err != nil:
	case c.in == nil:
		_, err = c.out.Write(b)
	default:
		_, err = io.ReadFull(c.in, b)
	}
	if err != nil {
		c.fail(err)
	}
}

func (c *codec) number(n *uint64) {
	if c.in == nil {
		c.buf = binary.AppendUvarint(c.buf[:0], *n)
		c.bytes(c.buf)
		return
	}
	if c.err != nil {
		return
	}
	var err error
	if *n, err = binary.ReadUvarint(c.in); err != nil {
		c.fail(err)
	}
}

func (c *codec) beginning(b *creation) {
	n := b.commit << 1
	if b.shared {
		n |= 1
	}
	c.number(&n)
	b.commit, b.shared = n>>1, n&1 == 1
}

func (c *codec) ref(r *structure.SpanRef) {
	if c.number(&r.Seq); r.Seq != 0 {
		c.bytes(r.Run[:])
	}
}

func (c *codec) hashes(s *hashSet) {
	var b [8]byte
	n := s.len()
	if c.number(&n); c.in == nil {
		for h := range s.all() {
			binary.LittleEndian.PutUint64(b[:], h)
			c.bytes(b[:])
		}
		return
	}
	for ; n > 0 && c.err == nil; n-- {
		if c.bytes(b[:]); c.err == nil {
			s.add(binary.LittleEndian.Uint64(b[:]))
		}
	}
}

// codeIDs is codeMap for keys that are ids.
func codeIDs[K, V any](c *codec, m map[structure.ID[K]]V, value func(*V)) {
	codeMap(c, m, func(id *structure.ID[K], v *V) {
		c.bytes(id[:])
		value(v)
	})
}

// codeMap writes or reads the number of entries and then each of them, in key order.
func codeMap[K interface {
	comparable
	Compare(K) int
}, V any](c *codec, m map[K]V, entry func(*K, *V)) {
	n := uint64(len(m))
	if c.number(&n); c.in == nil {
		for _, k := range slices.SortedFunc(maps.Keys(m), K.Compare) {
			v := m[k]
			entry(&k, &v)
		}
		return
	}
	for ; n > 0 && c.err == nil; n-- {
		var k K
		var v V
		if entry(&k, &v); c.err == nil {
			m[k] = v
		}
	}
}
