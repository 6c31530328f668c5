package pack

import (
	"errors"
	"sort"
)

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
	k := cacheKey{file: &p.source, kind: cachedDictionary}
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
	k := cacheKey{&p.source, cachedContent, uint64(n)}
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
	k := cacheKey{&p.source, cachedIDs, uint64(n)}
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
	ids, err := decodeIDs(b, r.ids)
	if err != nil {
		return nil, p.corrupt(r.parts[partIDs].offset, err.Error())
	}
	return ids, nil
}

// chapter returns a chapter.
func (p *File) chapter(n int) (*chapter, error) {
	k := cacheKey{&p.source, cachedChapter, uint64(n)}
	if n == 0 && !p.Dense {
		k.kind = cachedFirst
	}
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
	p.decoded.Add(1)
	decoded, err := decodeChapter(r, ids, fields, b, func(id uint32) (newID, error) {
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
	if err != nil {
		return nil, p.corrupt(r.parts[partColumns].offset, err.Error())
	}
	return &chapter{row: *r, n: n, commits: decoded.commits, places: decoded.places, sizes: decoded.sizes, objects: numbered(decoded.commits)}, nil
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
