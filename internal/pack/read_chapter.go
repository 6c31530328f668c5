package pack

import (
	"errors"
	"sort"
	"sync"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/pack/columns"
	"github.com/lineage-store/lineage/internal/pack/compress"
	"github.com/lineage-store/lineage/internal/pack/layout"
)

// chapter is a decoded chapter without bodies.
type chapter struct {
	*bodies
	commits []*columns.Commit
}

// bodies are the places of the bodies of a chapter. These and the objects are all that messages of other chapters need, and
// take a small part of the memory of the chapter. They are cached apart from it, so that a message that names content of
// several chapters is read without decoding them again.
type bodies struct {
	layout.ChapterRow
	n             int     // of the chapter
	places, sizes []int64 // in its content

	mu  sync.Mutex
	ids []content.ID // of the bodies, in a dense pack; nil until they are needed
}

// cost is the memory of the bodies, approximately.
func (b *bodies) cost() int64 { return int64(len(b.places))*(16+int64(len(content.ID{}))) + 256 }

// codec returns the decompressor for the parts of a chapter.
func (p *File) codec(n int) (*compress.Codec, error) {
	if n == 0 || p.Dense {
		return &p.alone, nil
	}
	return p.dictionary()
}

// dictionary returns the decompressor for all chapters but the first.
func (p *File) dictionary() (*compress.Codec, error) {
	k := cacheKey{file: &p.mendedFile, kind: cachedDictionary}
	if d, ok, err := getOr[*compress.Codec](p.cache, k); ok || err != nil {
		return d, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if d, ok, err := getOr[*compress.Codec](p.cache, k); ok || err != nil {
		return d, err
	}
	rows, err := p.tableLocked()
	if err != nil {
		return nil, err
	}
	fields, err := p.expand(&p.alone, rows[0].Parts[layout.PartColumns], rows[0].Columns)
	if err != nil {
		return nil, p.cache.fault(k, err)
	}
	b, err := p.expand(&p.alone, rows[0].Parts[layout.PartContent], rows[0].ContentSize())
	if err != nil {
		return nil, p.cache.fault(k, err)
	}
	d := &compress.Codec{Dict: append(fields, b...), Stop: p.alone.Stop}
	p.cache.put(k, d, int64(len(d.Dict))+1<<19)
	return d, nil
}

// content returns the bodies and texts of a chapter.
func (p *File) content(rows []layout.ChapterRow, n int) ([]byte, error) {
	if n == 0 && !p.Dense {
		d, err := p.dictionary()
		if err != nil {
			return nil, err
		}
		return d.Dict[rows[0].Columns:], nil
	}
	k := cacheKey{&p.mendedFile, cachedContent, uint64(n)}
	if b, ok, err := getOr[[]byte](p.cache, k); ok || err != nil {
		return b, err
	}
	d, err := p.codec(n)
	if err != nil {
		return nil, err
	}
	b, err := p.expand(d, rows[n].Parts[layout.PartContent], rows[n].ContentSize())
	if err != nil {
		return nil, p.cache.fault(k, err)
	}
	p.cache.put(k, b, int64(len(b))+128)
	return b, nil
}

// cost estimates the memory of a chapter.
func (c *chapter) cost() int64 {
	n := c.Text + 1024
	for _, x := range c.commits {
		n += 256 + 416*int64(len(x.Records))
	}
	return n
}

// expand returns the decompressed content of a part of known size.
func (p *File) expand(d *compress.Codec, at layout.Range, size int64) ([]byte, error) {
	b, err := p.part(at)
	if err != nil {
		return nil, err
	}
	p.expanded.Add(1)
	out, err := d.Expand(b, size)
	if err != nil {
		return nil, p.corrupt(at.Offset, err.Error())
	}
	return out, nil
}

// ids returns the new ids of a chapter.
func (p *File) ids(rows []layout.ChapterRow, n int) ([]columns.ID, error) {
	k := cacheKey{&p.mendedFile, cachedIDs, uint64(n)}
	if ids, ok, err := getOr[[]columns.ID](p.cache, k); ok || err != nil {
		return ids, err
	}
	ids, err := p.readIDs(rows, n)
	if err != nil {
		return nil, p.cache.fault(k, err)
	}
	p.cache.put(k, ids, 2*rows[n].IDBytes+64)
	return ids, nil
}

func (p *File) readIDs(rows []layout.ChapterRow, n int) ([]columns.ID, error) {
	r := &rows[n]
	if r.IDs == 0 {
		return nil, nil
	}
	d, err := p.codec(n)
	if err != nil {
		return nil, err
	}
	b, err := p.expand(d, r.Parts[layout.PartIDs], r.IDBytes)
	if err != nil {
		return nil, err
	}
	ids, err := columns.DecodeIDs(b, r.IDs)
	if err != nil {
		return nil, p.corrupt(r.Parts[layout.PartIDs].Offset, err.Error())
	}
	return ids, nil
}

// chapter returns a chapter.
func (p *File) chapter(n int) (*chapter, error) {
	k := cacheKey{&p.mendedFile, cachedChapter, uint64(n)}
	if n == 0 && !p.Dense {
		k.kind = cachedFirst
	}
	if c, ok, err := getOr[*chapter](p.cache, k); ok || err != nil {
		return c, err
	}
	c, err := p.readChapter(n, true)
	if err != nil {
		return nil, p.cache.fault(k, err)
	}
	p.cache.put(k, c, c.cost())
	p.cache.put(cacheKey{&p.mendedFile, cachedBodies, uint64(n)}, c.bodies, c.bodies.cost())
	return c, nil
}

// readChapter decodes a chapter, with or without the places of its frames and records.
func (p *File) readChapter(n int, places bool) (*chapter, error) {
	rows, err := p.table()
	if err != nil {
		return nil, err
	}
	if n >= len(rows) {
		return nil, p.corrupt(p.foot.TableAt, "no such chapter")
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
	fields, err := p.expand(d, r.Parts[layout.PartColumns], r.Columns)
	if err != nil {
		return nil, err
	}
	b, err := p.content(rows, n)
	if err != nil {
		return nil, err
	}
	p.decoded.Add(1)
	decoded, err := columns.Decode(r, ids, fields, b, places, func(id uint32) (columns.ID, error) {
		at := sort.Search(n, func(i int) bool { return rows[i].ID > id }) - 1
		if at < 0 {
			return columns.ID{}, layout.ErrForm
		}
		ids, err := p.ids(rows, at)
		if err != nil || int(id-rows[at].ID) >= len(ids) {
			return columns.ID{}, errors.Join(err, layout.ErrForm)
		}
		return ids[id-rows[at].ID], nil
	})
	if err != nil {
		return nil, p.corrupt(r.Parts[layout.PartColumns].Offset, err.Error())
	}
	return &chapter{&bodies{ChapterRow: *r, n: n, places: decoded.Places, sizes: decoded.Sizes}, decoded.Commits}, nil
}
