package pack

import "iter"

// Frames yields the commits from a position on, in order. An error ends the
// sequence.
func (p *File) Frames(segment uint32, offset int64) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		n, err := p.find(segment, offset)
		if err != nil {
			yield(Frame{}, err)
			return
		}
		for ; n < len(p.rows); n++ {
			c, err := p.chapter(n)
			if err != nil {
				yield(Frame{}, err)
				return
			}
			for _, x := range c.commits {
				if x.rest != nil || !x.startsFrom(segment, offset) {
					continue
				}
				f, err := p.frame(piece{c, x, n})
				if !yield(f, err) || err != nil {
					return
				}
			}
		}
	}
}

// End returns the end of the last frame.
func (p *File) End() (segment uint32, offset int64, err error) {
	rows, err := p.table()
	if err != nil || len(rows) == 0 {
		return p.Last, segmentHeader, err
	}
	c, err := p.chapter(len(rows) - 1)
	if err != nil {
		return 0, 0, err
	}
	x := c.commits[len(c.commits)-1]
	return x.segment, x.end, nil
}

// Salvage yields every readable commit in order, and before them and instead of others the
// reasons why some are missing.
func (p *File) Salvage() iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		rows, err := p.table()
		if err != nil {
			if p.unfinished == nil && !yield(Frame{}, err) {
				return
			}
			for _, err := range p.findChapters() {
				if !yield(Frame{}, err) {
					return
				}
			}
			rows = p.rows
		}
		for n := range rows {
			c, err := p.chapter(n)
			if err != nil {
				if !yield(Frame{}, err) {
					return
				}
				continue
			}
			for _, x := range c.commits {
				if x.rest != nil || x.open && len(p.rests(n)) == 0 { // what is missing was said
					continue
				}
				if !yield(p.frame(piece{c, x, n})) {
					return
				}
			}
		}
	}
}
