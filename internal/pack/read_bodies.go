package pack

import (
	"sort"

	"github.com/lineage-store/lineage/content"
)

// bodies returns the bodies of a chapter.
func (p *File) bodies(n int) (*bodies, error) {
	if b, ok := p.cache.get(cacheKey{&p.mendedFile, cachedBodies, uint64(n)}).(*bodies); ok {
		return b, nil
	}
	c, err := p.chapter(n)
	if err != nil {
		return nil, err
	}
	return c.bodies, nil
}

// bodiesWith returns the bodies of the chapter that has a body.
func (p *File) bodiesWith(body uint64) (*bodies, error) {
	rows, err := p.table()
	if err != nil {
		return nil, err
	}
	n := sort.Search(len(rows), func(i int) bool { return rows[i].Body > body }) - 1
	for n >= 0 && rows[n].Bodies == 0 {
		n--
	}
	if n < 0 || body >= rows[n].Body+rows[n].Bodies {
		return nil, p.corrupt(p.foot.TableAt, "a body is in no chapter")
	}
	return p.bodies(n)
}

// idOf returns the content id of a body. In a dense pack the ids of all bodies of the chapter are computed together,
// because this takes less than expanding its content once more for another body.
func (p *File) idOf(in *bodies, body uint64) (content.ID, error) {
	if !p.Dense || body-in.Body >= in.Bodies {
		b, err := p.bodyIn(in, body)
		return content.Sum(b), err
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.ids == nil {
		ids := make([]content.ID, in.Bodies)
		for i := range ids {
			b, err := p.bodyIn(in, in.Body+uint64(i))
			if err != nil {
				return content.ID{}, err
			}
			ids[i] = content.Sum(b)
		}
		in.ids = ids
	}
	return in.ids[body-in.Body], nil
}

// bodyIn returns a body of a chapter.
func (p *File) bodyIn(c *bodies, body uint64) ([]byte, error) {
	if body-c.Body >= c.Bodies {
		return nil, p.corrupt(c.Offset, "a body is not in its chapter")
	}
	at, size := c.places[body-c.Body], c.sizes[body-c.Body]
	if size == 0 {
		return []byte{}, nil
	}
	b, err := p.content(p.rows, c.n)
	if err != nil {
		return nil, err
	}
	return b[at : at+size : at+size], nil
}
