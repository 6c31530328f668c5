package pack

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/lineage-store/lineage/lineage/backend"
)

// File is an open pack. It is safe for concurrent use.
type File struct {
	Header
	name  string
	src   io.ReaderAt
	size  int64
	foot  footer
	cache *Cache
	stop  func() error // asked now and then while the base is expanded; may be nil

	mu         sync.Mutex // held while the table or the base is read
	rows       []row
	foundation foundation

	found atomic.Pointer[directory] // when it was read

	mending sync.Once
	differs parity       // see difference
	unknown error        // why that could not be found out
	damaged atomic.Int64 // the offset of the damaged block, when it is known, and 1

	decoded  atomic.Int64 // chapters, for tests
	expanded atomic.Int64 // parts that expanding began of, for tests
}

// Open opens a pack: it reads its header and footer, and everything else when it
// is needed.
func Open(src io.ReaderAt, size int64, name string, cache *Cache) (*File, error) {
	p := &File{name: name, src: src, size: size, cache: cache}
	if size < headerSize+tailSize {
		return nil, p.corrupt(0, "is too short for a pack")
	}
	if size > mostFile {
		return nil, p.corrupt(0, fmt.Sprintf("has %d bytes, more than a pack can have", size))
	}
	head, tail := make([]byte, headerSize), make([]byte, tailSize)
	if err := p.read(head, 0); err != nil {
		return nil, err
	}
	if err := p.read(tail, size-tailSize); err != nil {
		return nil, err
	}
	var err error
	if p.foot, err = decodeFooter(tail[footerSize:]); err != nil {
		p.foot, err = decodeFooter(tail[:footerSize])
	}
	if err == nil && !p.foot.fits(size) {
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

// part returns the bytes of a part.
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

// checked returns the bytes of a part with their checksum, with errSum when that does not
// match.
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
	b := make([]byte, p.foot.length)
	if err := p.read(b, p.foot.offset); err != nil {
		return nil, err
	}
	right := func(b []byte) bool { return crc32.Checksum(b, castagnoli) == p.foot.sum }
	if !right(b) && !p.restore(b, p.foot.offset, right) {
		return nil, p.corrupt(p.foot.offset, "checksum of the table does not match")
	}
	base, rows, err := readTable(b, p.Header, p.foot.offset)
	if err != nil {
		return nil, p.corrupt(p.foot.offset, err.Error())
	}
	p.foundation, p.rows = base, rows
	return rows, nil
}

// base is what every chapter but the first starts from, and the first chapter.
type base struct {
	ids   *idState
	state *state
	dict  dictionary
	first *chapter
}

// chapter is a decoded chapter, without the bodies.
type chapter struct {
	row
	newIDs  [][16]byte
	commits []*commit
	places  []int64 // of the bodies, in their groups
	sizes   []int64
	objects []objectAt
}

// base expands the base and decodes the first chapter, or finds that done.
func (p *File) base() (*base, error) {
	k := cacheKey{file: p, kind: cachedBase}
	if b, ok, err := getOr[*base](p.cache, k); ok || err != nil {
		return b, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if b, ok, err := getOr[*base](p.cache, k); ok || err != nil {
		return b, err
	}
	b, err := p.readBase()
	if err != nil {
		return nil, p.cache.fault(k, err)
	}
	p.cache.put(k, b, int64(len(b.dict.bytes))+b.first.cost()+1<<19)
	return b, nil
}

// readBase is called with mu held.
func (p *File) readBase() (*base, error) {
	rows, err := p.tableLocked()
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, p.corrupt(p.foot.offset, "no chapters")
	}
	r := rows[0]
	b := &base{ids: newIDState(), dict: dictionary{stop: p.stop}}
	ids, err := p.ids(&r, b.ids)
	if err != nil {
		return nil, err
	}
	size := p.foundation.raw + p.foundation.texts
	if _, err := p.expand(p.foundation.part, size, func(c []byte, n int64) ([]byte, error) { return nil, b.dict.first(c, n) }); err != nil {
		return nil, err
	}
	b.first, b.state, err = p.decode(&r, newState(), ids, b.dict.bytes[r.textsAt:][:r.text], nil)
	return b, err
}

// cost is about how much memory a chapter takes.
func (c *chapter) cost() int64 {
	n := int64(len(c.newIDs))*16 + c.text + 1024
	for _, x := range c.commits {
		n += 256 + 416*int64(len(x.records))
	}
	return n
}

func (p *File) expand(at part, size int64, expand func([]byte, int64) ([]byte, error)) ([]byte, error) {
	b, err := p.part(at)
	if err != nil {
		return nil, err
	}
	p.expanded.Add(1)
	out, err := expand(b, size)
	if err != nil {
		return nil, p.corrupt(at.offset, err.Error())
	}
	return out, nil
}

// ids decodes the new ids of a chapter.
func (p *File) ids(r *row, s *idState) ([][16]byte, error) {
	b, err := p.part(r.parts[partIDs])
	if err != nil || r.ids == 0 {
		return nil, err
	}
	ids := s.ids(newReader(b), nil, r.ids, nil)
	if len(ids) != r.ids {
		return nil, p.corrupt(r.parts[partIDs].offset, errForm.Error())
	}
	return ids, nil
}

// idsOf returns the new ids of a chapter other than the base.
func (p *File) idsOf(b *base, rows []row, n int) ([][16]byte, error) {
	if n == 0 {
		return b.first.newIDs, nil
	}
	k := cacheKey{p, cachedIDs, uint64(n)}
	if ids, ok, err := getOr[[][16]byte](p.cache, k); ok || err != nil {
		return ids, err
	}
	s := *b.ids
	ids, err := p.ids(&rows[n], &s)
	if err != nil {
		return nil, p.cache.fault(k, err)
	}
	p.cache.put(k, ids, int64(len(ids))*16+64)
	return ids, nil
}

// chapter returns a chapter.
func (p *File) chapter(n int) (*chapter, *base, error) {
	b, err := p.base()
	if err != nil {
		return nil, nil, err
	}
	if n == 0 {
		return b.first, b, nil
	}
	k := cacheKey{p, cachedChapter, uint64(n)}
	if c, ok, err := getOr[*chapter](p.cache, k); ok || err != nil {
		return c, b, err
	}
	c, err := p.readChapter(b, n)
	if err != nil {
		return nil, nil, p.cache.fault(k, err)
	}
	p.cache.put(k, c, c.cost())
	return c, b, nil
}

func (p *File) readChapter(b *base, n int) (*chapter, error) {
	rows, err := p.table()
	if err != nil {
		return nil, err
	}
	r := &rows[n]
	ids, err := p.idsOf(b, rows, n)
	if err != nil {
		return nil, err
	}
	ids = slices.Clone(ids)
	var text []byte
	if r.inBase {
		text = b.dict.bytes[r.textsAt:][:r.text]
	} else if text, err = p.expand(r.parts[partTexts], r.text, b.dict.after); err != nil {
		return nil, err
	}
	c, used, err := p.decode(r, b.state, ids, text, func(id uint32) ([16]byte, error) {
		at := sort.Search(n, func(i int) bool { return rows[i].id > id }) - 1
		if at < 0 {
			return [16]byte{}, errForm
		}
		ids, err := p.idsOf(b, rows, at)
		if err != nil || int(id-rows[at].id) >= len(ids) {
			return [16]byte{}, errors.Join(err, errForm)
		}
		if found := ids[id-rows[at].id]; found != ([16]byte{}) {
			return found, nil
		}
		c, _, err := p.chapter(at) // derived: what it is from is among its records
		if err != nil {
			return [16]byte{}, err
		}
		return c.newIDs[id-rows[at].id], nil
	})
	if err != nil {
		return nil, err
	}
	p.cache.states.Put(used)
	return c, nil
}

// decode decodes the records of a chapter. Ids of earlier chapters come from far.
func (p *File) decode(r *row, s *state, ids [][16]byte, text []byte, far func(uint32) ([16]byte, error)) (*chapter, *state, error) {
	b, err := p.part(r.parts[partRecords])
	if err != nil {
		return nil, nil, err
	}
	spare, ok := p.cache.states.Get().(*state)
	if !ok {
		spare = new(state)
	}
	f := &former{state: s.beginIn(spare, r.id, r.body), c: newReader(b), text: text}
	f.id = func(n uint32) ([16]byte, error) {
		switch {
		case n == 0:
			return [16]byte{}, nil
		case n >= r.id && int(n-r.id) < len(ids):
			return ids[n-r.id], nil
		case n < r.id && far != nil:
			return far(n)
		}
		return [16]byte{}, errForm
	}
	f.give = func(n uint32, id [16]byte) bool {
		if n < r.id || int(n-r.id) >= len(ids) || ids[n-r.id] != ([16]byte{}) {
			return false
		}
		ids[n-r.id] = id
		return true
	}
	p.decoded.Add(1)
	c := &chapter{row: *r, newIDs: ids}
	c.commits = f.commits(nil, r.pieces(), r.place())
	if f.err == nil && (len(f.text) > 0 || f.at.nextBody != r.body+r.bodies || f.c.spent()) {
		f.err = errForm
	}
	if f.err == nil {
		f.err = c.lay()
	}
	if f.err != nil {
		return nil, nil, p.corrupt(r.parts[partRecords].offset, f.err.Error())
	}
	c.objects = numbered(c.commits)
	return c, f.state, nil
}

// lay finds out where in the groups the bodies are.
func (c *chapter) lay() error {
	var sizes []int64
	for _, x := range c.commits {
		for i, body := range x.bodies {
			if body >= 0 {
				sizes = append(sizes, x.sizes[i])
			}
		}
	}
	if uint64(len(sizes)) != c.bodies {
		return errForm
	}
	c.sizes = sizes
	groups := c.groups
	if c.inBase {
		groups = []group{{bodies: len(sizes), raw: c.raw}}
	}
	for _, g := range groups {
		var at int64
		if g.bodies > len(sizes) {
			return errForm
		}
		for _, n := range sizes[:g.bodies] {
			c.places = append(c.places, at)
			at += n
		}
		if at != g.raw {
			return errForm
		}
		sizes = sizes[g.bodies:]
	}
	if len(sizes) > 0 {
		return errForm
	}
	return nil
}

// bodyIn returns a body of a chapter.
func (p *File) bodyIn(c *chapter, b *base, body uint64) ([]byte, error) {
	if body-c.body >= c.bodies {
		return nil, p.corrupt(c.offset, "a body is not in its chapter")
	}
	at, size := c.places[body-c.body], c.sizes[body-c.body]
	switch {
	case size == 0:
		return []byte{}, nil
	case c.inBase:
		at += c.rawAt
		return b.dict.bytes[at : at+size : at+size], nil
	}
	i := sort.Search(len(c.groups), func(i int) bool { return c.groups[i].body > body }) - 1
	k := cacheKey{p, cachedGroup, c.groups[i].body}
	raw, ok, err := getOr[[]byte](p.cache, k)
	if err != nil {
		return nil, err
	}
	if !ok {
		if raw, err = p.expand(c.groups[i].part, c.groups[i].raw, b.dict.after); err != nil {
			return nil, p.cache.fault(k, err)
		}
		p.cache.put(k, raw, int64(len(raw))+128)
	}
	return raw[at : at+size : at+size], nil
}

// body returns any body of the pack.
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
	c, b, err := p.chapter(n)
	if err != nil {
		return nil, err
	}
	return p.bodyIn(c, b, body)
}
