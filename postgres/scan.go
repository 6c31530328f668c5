package postgres

import (
	"bytes"
	"iter"
	"slices"

	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/internal/index"
)

// scan returns a page with the first entry of a range: the last page that was read, or else one with up to limit entries.
func (t *stateReader) scan(from, to []byte, limit int) (scannedPage, error) {
	if p := t.pages.scanned; p.has(from, to) {
		return p, nil
	}
	entries, next, err := t.page(from, to, limit)
	if err == nil {
		err = t.related(entries)
	}
	if err != nil {
		return scannedPage{}, err
	}
	t.pages.scanned = scannedPage{bytes.Clone(from), next, to, entries}
	return t.pages.scanned, nil
}

// stored yields the entries of the server.
func (t *stateReader) stored(from, to []byte) iter.Seq2[index.Entry, error] {
	return func(yield func(index.Entry, error) bool) {
		if from == nil {
			from = []byte{}
		}
		for limit := firstPage; from != nil; limit = fullPage {
			if r := t.fetched.covering(from, to); r != nil {
				for _, e := range r.entries[seek(r.entries, from):] {
					if to != nil && bytes.Compare(e.Key, to) >= 0 || !yield(e, nil) {
						return
					}
				}
				return
			}
			p, err := t.scan(from, to, limit)
			if err != nil {
				yield(index.Entry{}, err)
				return
			}
			for _, e := range p.entries {
				if bytes.Compare(e.Key, from) >= 0 && !yield(e, nil) {
					return
				}
			}
			from = p.high
		}
	}
}

// page returns the first entries of a range, and the key at which the range continues; nil at its end.
func (t *stateReader) page(from, to []byte, limit int) (entries []index.Entry, next []byte, err error) {
	f, err := t.fetch(t.ctx, need{pages: []entryPage{{read.Range{From: from, To: to}, limit, false}}, damaged: t.damaged})
	if err != nil {
		return nil, nil, err
	}
	p := f.pages[0]
	if !p.more {
		return inRange(p.entries, from, to), nil, nil
	}
	if !isLong(p.next) {
		return inRange(p.entries, from, to), append(p.next, 0), nil
	}
	// Long keys with the same start are not in order, and there may be more of them: read all of them.
	start := p.next[:longKey]
	group, err := t.fetch(t.ctx, need{Need: read.Need{Ranges: []read.Range{read.Under(start)}}, damaged: t.damaged})
	if err != nil {
		return nil, nil, err
	}
	all := slices.DeleteFunc(p.entries, func(e index.Entry) bool { return bytes.HasPrefix(e.Key, start) })
	return inRange(append(all, group.ranges[0]...), from, to), keys.PrefixEnd(start), nil
}

// Scan implements read.Scanner.
func (t *stateReader) Scan(from, to []byte) iter.Seq2[index.Entry, error] {
	below := t.stored(from, to)
	if u := t.state.unfolded.between(from, to); len(u) > 0 {
		below = merged(below, func() sorted { return &list{u} }, to)
	}
	if t.added.empty() {
		return below
	}
	return merged(below, func() sorted { c := t.added.entries.Latest().Seek(from); return &c }, to)
}

// Last implements read.Index.
func (t *stateReader) Last(from, to []byte) (index.Entry, bool, error) {
	below := t.lastStored
	if unfolded := t.state.unfolded.between(from, to); len(unfolded) > 0 {
		if !t.unfoldedLast(read.Range{From: from, To: to}) {
			return t.lastScanned(from, to)
		}
		below = func([]byte, []byte) (index.Entry, bool, error) { return unfolded[len(unfolded)-1], true, nil }
	}
	added, ok := t.added.last(from, to)
	if !ok {
		return below(from, to)
	}
	if added.Value == nil { // the last one was deleted
		return t.lastScanned(from, to)
	}
	if e, ok, err := below(from, to); err != nil || ok && bytes.Compare(e.Key, added.Key) > 0 {
		return e, ok, err
	}
	return added, true, nil
}

// lastScanned is Last by reading the range.
func (t *stateReader) lastScanned(from, to []byte) (last index.Entry, ok bool, err error) {
	return lastOf(t.Scan(from, to))
}

func lastOf(all iter.Seq2[index.Entry, error]) (last index.Entry, ok bool, err error) {
	for e, err := range all {
		if err != nil {
			return e, false, err
		}
		last = e
	}
	return last, last.Key != nil, nil
}

// lastStored returns the last entry of a range on the server.
func (t *stateReader) lastStored(from, to []byte) (index.Entry, bool, error) {
	if e, known := t.fetched.last(read.Range{From: from, To: to}); known {
		return e, e.Key != nil, nil
	}
	f, err := t.fetch(t.ctx, need{pages: []entryPage{{read.Range{From: from, To: to}, 1, true}}})
	if err != nil || len(f.pages[0].entries) == 0 {
		return index.Entry{}, false, err
	}
	for _, e := range f.pages[0].entries { // those of a group, the last one first
		if bytes.Compare(e.Key, from) >= 0 && (to == nil || bytes.Compare(e.Key, to) < 0) && !isLong(e.Key) {
			return e, true, nil
		}
	}
	return lastOf(t.stored(from, to)) // the last row has none of the range, or long keys, which are not in order
}

// Cursor implements read.Index.
func (t *stateReader) Cursor(from, to []byte) read.Cursor { return &cursor{t: t, from: from, to: to} }

// cursor reads entries page by page.
type cursor struct {
	t        *stateReader
	from, to []byte
	page     []index.Entry
	end      bool
}

// Next implements read.Cursor.
func (c *cursor) Next() (index.Entry, bool, error) {
	for len(c.page) == 0 && !c.end {
		for e, err := range c.t.Scan(c.from, c.to) {
			if err != nil {
				return index.Entry{}, false, err
			}
			if c.page = append(c.page, e); len(c.page) == firstPage {
				break
			}
		}
		if c.end = len(c.page) < firstPage; len(c.page) > 0 {
			c.from = append(bytes.Clone(c.page[len(c.page)-1].Key), 0)
		}
	}
	if len(c.page) == 0 {
		return index.Entry{}, false, nil
	}
	e := c.page[0]
	c.page = c.page[1:]
	return e, true, nil
}

// Skip implements read.Cursor.
func (c *cursor) Skip(key []byte) {
	for len(c.page) > 0 && bytes.Compare(c.page[0].Key, key) < 0 {
		c.page = c.page[1:]
	}
	if len(c.page) == 0 && bytes.Compare(c.from, key) < 0 {
		c.from = key
	}
}
