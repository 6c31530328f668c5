package pack

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
)

// File is an open pack. It is safe for concurrent use.
type File struct {
	Header
	name  string
	src   io.ReaderAt
	size  int64 // as written
	cut   int64 // missing bytes at the end, of the second footer
	foot  footer
	cache *Cache
	// unfinished is why the footers cannot be used, in a pack that is only to be salvaged.
	unfinished error
	alone      codec // for parts without a dictionary
	// proven is set by Prove: the ids of the bodies that were read so far.
	proven []content.ID

	mu         sync.Mutex // held while the table or the dictionary is read
	rows       []row
	identities []identity

	found atomic.Pointer[directory] // nil until it is read

	mending sync.Once
	differs parity       // see difference
	unknown error        // error of computing it
	damaged atomic.Int64 // offset of the damaged block plus 1; 0 if unknown

	decoded  atomic.Int64 // number of chapters, for tests
	expanded atomic.Int64 // number of decompressed parts, for tests
}

// Open opens a pack. It reads only the header and footer; the rest is read on demand.
func Open(src io.ReaderAt, size int64, name string, cache *Cache) (*File, error) {
	p := &File{name: name, src: src, cache: cache}
	if size < headerSize+tailSize {
		return nil, p.corrupt(0, "is too short for a pack")
	}
	if size > maxFile {
		return nil, p.corrupt(0, fmt.Sprintf("has %d bytes, more than a pack can have", size))
	}
	head, tail := make([]byte, headerSize), make([]byte, tailSize)
	if err := p.read(head, 0); err != nil {
		return nil, err
	}
	if err := p.read(tail, size-tailSize); err != nil {
		return nil, err
	}
	err := p.findFooter(tail, size)
	if err == nil && !p.foot.fits(p.size) {
		err = errTable
	}
	if err == nil && headerSum(head) != p.foot.header {
		p.restore(head, 0, func(b []byte) bool { return headerSum(b) == p.foot.header })
	}
	header, headErr := decodeHeader(head)
	switch {
	case errors.Is(headErr, backend.ErrNewerFormat), errors.Is(headErr, backend.ErrOlderFormat):
		return nil, fmt.Errorf("%s: %w", name, headErr)
	case headErr != nil:
		return nil, p.corrupt(0, headErr.Error())
	case err == nil && headerSum(head) != p.foot.header:
		err = errors.New("header and footer do not belong together")
	}
	if err != nil {
		return nil, p.corrupt(size-footerSize, err.Error())
	}
	p.Header = header
	return p, nil
}

// findFooter finds a footer in the last bytes of a file. If the second one is damaged or cut short, the
// first one is used.
func (p *File) findFooter(tail []byte, size int64) (err error) {
	cutBy := func(n int, foot footer) {
		p.foot, p.cut, p.size = foot, int64(n), size+int64(n)
	}
	foot, err := decodeFooter(tail[footerSize:])
	if err == nil {
		if cutBy(footerSize, foot); bytes.Equal(tail[:footerSize], tail[footerSize:]) || !p.parityMatches() {
			cutBy(0, foot)
		}
		return nil
	}
	for n := range footerSize {
		if foot, ok := decodeFooter(tail[n:][:footerSize]); ok == nil {
			cutBy(n, foot)
			return nil
		}
	}
	return err
}

// parityMatches reports whether the parity is where the size of the file says.
func (p *File) parityMatches() bool {
	if !p.foot.fits(p.size) {
		return false
	}
	_, err := p.checked(part{offset: p.foot.parityAt(p.size), size: int64(p.foot.parity) + 4})
	return err == nil
}

// Name returns the file's path.
func (p *File) Name() string { return p.name }

func (p *File) corrupt(offset int64, what string) error {
	return &backend.CorruptError{File: p.name, Offset: offset, What: what}
}

func (p *File) read(b []byte, at int64) error {
	n, err := p.src.ReadAt(b, at)
	switch {
	case n == len(b):
		return nil
	case errors.Is(err, io.EOF):
		return p.corrupt(at+int64(n), "the file ends too early")
	case errors.Is(err, fs.ErrClosed):
		return fmt.Errorf("read %s: %w", p.name, backend.ErrClosed)
	}
	return fmt.Errorf("read %s: %w", p.name, err)
}

// part returns the content of a part.
func (p *File) part(at part) ([]byte, error) {
	if at.size == 0 {
		return nil, nil
	}
	if at.size < 4 {
		return nil, p.corrupt(at.offset, errForm.Error())
	}
	b, err := p.checked(at)
	if errors.Is(err, errSum) {
		if !p.restore(b, at.offset, sumMatches) {
			return nil, p.corrupt(at.offset, "checksum of a part does not match")
		}
		err = nil
	}
	if err != nil {
		return nil, err
	}
	return b[:at.size-4], nil
}

var errSum = errors.New("checksum does not match")

// checked returns a part with its checksum, and errSum if the checksum is wrong.
func (p *File) checked(at part) ([]byte, error) {
	b := make([]byte, at.size)
	if err := p.read(b, at.offset); err != nil {
		return nil, err
	}
	if !sumMatches(b) {
		return b, errSum
	}
	return b, nil
}

// sumMatches reports whether bytes end with their checksum.
func sumMatches(b []byte) bool {
	end := len(b) - 4
	return crc32.Checksum(b[:end], castagnoli) == binary.LittleEndian.Uint32(b[end:])
}

// table returns the rows of all chapters.
func (p *File) table() ([]row, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tableLocked()
}

func (p *File) tableLocked() ([]row, error) {
	if p.rows != nil {
		return p.rows, nil
	}
	if p.unfinished != nil {
		return nil, p.unfinished
	}
	b := make([]byte, p.foot.length)
	if err := p.read(b, p.foot.offset); err != nil {
		return nil, err
	}
	right := func(b []byte) bool { return crc32.Checksum(b, castagnoli) == p.foot.sum }
	if !right(b) && !p.restore(b, p.foot.offset, right) {
		return nil, p.corrupt(p.foot.offset, "checksum of the table does not match")
	}
	identities, b, err := readIdentities(b, p.Header)
	if err != nil {
		return nil, p.corrupt(p.foot.offset, err.Error())
	}
	rows, err := readTable(b, p.Header, p.foot.offset)
	if err != nil {
		return nil, p.corrupt(p.foot.offset, err.Error())
	}
	p.rows, p.identities = rows, identities
	return rows, nil
}

// Objects returns how many ids and bodies the pack has.
func (p *File) Objects() (uint64, error) {
	rows, err := p.table()
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	last := &rows[len(rows)-1]
	return uint64(last.id) + uint64(last.ids) + last.body + last.bodies, nil
}

// chapter is a decoded chapter without bodies.
type chapter struct {
	row
	n       int
	commits []*commit
	places  []int64 // of the bodies in the content
	sizes   []int64
	objects []objectAt
}

// codec returns the decompressor for the parts of a chapter.
func (p *File) codec(n int) (*codec, error) {
	if n == 0 || p.Dense {
		return &p.alone, nil
	}
	return p.dictionary()
}

// dictionary returns the decompressor for all chapters but the first.
func (p *File) dictionary() (*codec, error) {
	k := cacheKey{file: p, kind: cachedDictionary}
	if d, ok, err := getOr[*codec](p.cache, k); ok || err != nil {
		return d, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if d, ok, err := getOr[*codec](p.cache, k); ok || err != nil {
		return d, err
	}
	rows, err := p.tableLocked()
	if err != nil {
		return nil, err
	}
	fields, err := p.expand(&p.alone, rows[0].parts[partColumns], rows[0].columns)
	if err != nil {
		return nil, p.cache.fault(k, err)
	}
	b, err := p.expand(&p.alone, rows[0].parts[partContent], rows[0].size())
	if err != nil {
		return nil, p.cache.fault(k, err)
	}
	d := &codec{dict: append(fields, b...), stop: p.alone.stop}
	p.cache.put(k, d, int64(len(d.dict))+1<<19)
	return d, nil
}

// content returns the bodies and texts of a chapter.
func (p *File) content(rows []row, n int) ([]byte, error) {
	if n == 0 && !p.Dense {
		d, err := p.dictionary()
		if err != nil {
			return nil, err
		}
		return d.dict[rows[0].columns:], nil
	}
	k := cacheKey{p, cachedContent, uint64(n)}
	if b, ok, err := getOr[[]byte](p.cache, k); ok || err != nil {
		return b, err
	}
	d, err := p.codec(n)
	if err != nil {
		return nil, err
	}
	b, err := p.expand(d, rows[n].parts[partContent], rows[n].size())
	if err != nil {
		return nil, p.cache.fault(k, err)
	}
	p.cache.put(k, b, int64(len(b))+128)
	return b, nil
}

// cost estimates the memory of a chapter.
func (c *chapter) cost() int64 {
	n := c.text + 1024
	for _, x := range c.commits {
		n += 256 + 416*int64(len(x.records))
	}
	return n
}

// expand returns the decompressed content of a part of known size.
func (p *File) expand(d *codec, at part, size int64) ([]byte, error) {
	b, err := p.part(at)
	if err != nil {
		return nil, err
	}
	p.expanded.Add(1)
	out, err := d.expand(b, size)
	if err != nil {
		return nil, p.corrupt(at.offset, err.Error())
	}
	return out, nil
}

// ids returns the new ids of a chapter.
func (p *File) ids(rows []row, n int) ([]newID, error) {
	k := cacheKey{p, cachedIDs, uint64(n)}
	if ids, ok, err := getOr[[]newID](p.cache, k); ok || err != nil {
		return ids, err
	}
	ids, err := p.readIDs(rows, n)
	if err != nil {
		return nil, p.cache.fault(k, err)
	}
	p.cache.put(k, ids, 2*rows[n].idBytes+64)
	return ids, nil
}

func (p *File) readIDs(rows []row, n int) ([]newID, error) {
	r := &rows[n]
	if r.ids == 0 {
		return nil, nil
	}
	d, err := p.codec(n)
	if err != nil {
		return nil, err
	}
	b, err := p.expand(d, r.parts[partIDs], r.idBytes)
	if err != nil {
		return nil, err
	}
	c := newReader(b, idColumns)
	ids := codeIDs(c, nil, r.ids)
	if len(ids) != r.ids || !c.complete() {
		return nil, p.corrupt(r.parts[partIDs].offset, errForm.Error())
	}
	return ids, nil
}

// chapter returns a chapter.
func (p *File) chapter(n int) (*chapter, error) {
	k := cacheKey{p, cachedChapter, uint64(n)}
	if c, ok, err := getOr[*chapter](p.cache, k); ok || err != nil {
		return c, err
	}
	c, err := p.readChapter(n)
	if err != nil {
		return nil, p.cache.fault(k, err)
	}
	p.cache.put(k, c, c.cost())
	return c, nil
}

func (p *File) readChapter(n int) (*chapter, error) {
	rows, err := p.table()
	if err != nil {
		return nil, err
	}
	if n >= len(rows) {
		return nil, p.corrupt(p.foot.offset, "no such chapter")
	}
	ids, err := p.ids(rows, n)
	if err != nil {
		return nil, err
	}
	d, err := p.codec(n)
	if err != nil {
		return nil, err
	}
	r := &rows[n]
	fields, err := p.expand(d, r.parts[partColumns], r.columns)
	if err != nil {
		return nil, err
	}
	b, err := p.content(rows, n)
	if err != nil {
		return nil, err
	}
	return p.decode(r, n, ids, fields, b, func(id uint32) (newID, error) {
		at := sort.Search(n, func(i int) bool { return rows[i].id > id }) - 1
		if at < 0 {
			return newID{}, errForm
		}
		ids, err := p.ids(rows, at)
		if err != nil || int(id-rows[at].id) >= len(ids) {
			return newID{}, errors.Join(err, errForm)
		}
		return ids[id-rows[at].id], nil
	})
}

// decode decodes the records of a chapter. far looks up ids of earlier chapters.
func (p *File) decode(r *row, n int, ids []newID, fields, b []byte, far func(uint32) (newID, error)) (*chapter, error) {
	f := &recordCoder{state: newState(r.id, r.body), c: newReader(fields, columns)}
	for kind, n := range r.laid {
		f.laid[kind], b = b[:n:n], b[n:]
		if kind+1 < bodyKinds {
			f.begins[kind+1] = f.begins[kind] + n
		}
	}
	f.text = b

	f.id = func(n uint32) (newID, error) {
		switch {
		case n == 0:
			return newID{}, nil
		case n >= r.id && int(n-r.id) < len(ids):
			return ids[n-r.id], nil
		case n < r.id:
			return far(n)
		}
		return newID{}, errForm
	}
	p.decoded.Add(1)
	c := &chapter{row: *r, n: n}
	c.commits = f.commits(nil, r.pieces(), r.place())
	if f.err == nil && (len(f.text)+len(f.laid[bodyText])+len(f.laid[bodyOther]) > 0 || f.at.nextBody != r.body+r.bodies || !f.c.complete()) {
		f.err = errForm
	}
	if f.err != nil {
		return nil, p.corrupt(r.parts[partColumns].offset, f.err.Error())
	}
	c.places, c.sizes = f.places, f.sizes
	c.objects = numbered(c.commits)
	return c, nil
}

// bodyIn returns a body of a chapter.
func (p *File) bodyIn(c *chapter, body uint64) ([]byte, error) {
	if body-c.body >= c.bodies {
		return nil, p.corrupt(c.offset, "a body is not in its chapter")
	}
	at, size := c.places[body-c.body], c.sizes[body-c.body]
	if size == 0 {
		return []byte{}, nil
	}
	b, err := p.content(p.rows, c.n)
	if err != nil {
		return nil, err
	}
	return b[at : at+size : at+size], nil
}

// body returns a body of the pack.
func (p *File) body(body uint64) ([]byte, error) {
	rows, err := p.table()
	if err != nil {
		return nil, err
	}
	n := sort.Search(len(rows), func(i int) bool { return rows[i].body > body }) - 1
	for n >= 0 && rows[n].bodies == 0 {
		n--
	}
	if n < 0 || body >= rows[n].body+rows[n].bodies {
		return nil, p.corrupt(p.foot.offset, "a body is in no chapter")
	}
	c, err := p.chapter(n)
	if err != nil {
		return nil, err
	}
	return p.bodyIn(c, body)
}
