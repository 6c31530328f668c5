package postgres

import (
	"bytes"
	"sort"

	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/internal/index"
)

// The first page of a scan is small: many readers want one entry.
const (
	firstPage = 32
	fullPage  = 512
)

// pages has the pages of scans and listings that were read last.
type pages struct {
	scanned  scannedPage // another scan may begin in it
	listings map[string]*orderedPage
}

// listing returns the page of a listing, by its direction and the end of its range.
func (p *pages) listing(direction byte, end []byte) *orderedPage {
	key := string(direction) + string(end)
	o := p.listings[key]
	if o == nil {
		if o = new(orderedPage); p.listings == nil {
			p.listings = make(map[string]*orderedPage)
		}
		p.listings[key] = o
	}
	return o
}

// scannedPage is a page of a scan. It has the entries with low <= key < high; a nil high has no end.
type scannedPage struct {
	low, high []byte
	to        []byte // the end of the range of the scan
	entries   []index.Entry
}

// has reports whether the page has the first entry of another scan of the range.
func (p *scannedPage) has(from, to []byte) bool {
	return p.low != nil && bytes.Equal(p.to, to) && bytes.Compare(p.low, from) <= 0 && (p.high == nil || bytes.Compare(from, p.high) < 0)
}

// orderedPage is a page of a listing. It has the entries with low <= key < high.
type orderedPage struct {
	low, high []byte
	entries   []index.Entry
}

// first returns the first entry with from <= key < to. It fetches the next page if necessary.
func (o *orderedPage) first(from, to []byte, fetch func(entryPage) (foundPage, error)) (index.Entry, bool, error) {
	for at := from; ; {
		if bytes.Compare(o.low, at) <= 0 && bytes.Compare(at, o.high) < 0 {
			if i := seek(o.entries, at); i < len(o.entries) {
				return o.entries[i], true, nil
			}
			at = o.high
		}
		if bytes.Compare(at, to) >= 0 {
			return index.Entry{}, false, nil
		}
		p, err := fetch(entryPage{read.Range{From: at, To: to}, firstPage, false})
		if err != nil {
			return index.Entry{}, false, err
		}
		*o = orderedPage{low: bytes.Clone(at), high: bytes.Clone(to), entries: p.entries}
		if p.more {
			o.high = append(p.next, 0)
		}
	}
}

// last returns the last entry with from <= key < to, from a page whose entries descend. It fetches the next page if necessary.
func (o *orderedPage) last(from, to []byte, fetch func(entryPage) (foundPage, error)) (index.Entry, bool, error) {
	for before := to; ; {
		if bytes.Compare(o.low, before) < 0 && bytes.Compare(before, o.high) <= 0 {
			i := sort.Search(len(o.entries), func(i int) bool { return bytes.Compare(o.entries[i].Key, before) < 0 })
			if i < len(o.entries) {
				return o.entries[i], true, nil
			}
			before = o.low
		}
		if bytes.Compare(before, from) <= 0 {
			return index.Entry{}, false, nil
		}
		p, err := fetch(entryPage{read.Range{From: from, To: before}, firstPage, true})
		if err != nil {
			return index.Entry{}, false, err
		}
		*o = orderedPage{low: bytes.Clone(from), high: bytes.Clone(before), entries: p.entries}
		if p.more {
			o.low = p.next
		}
	}
}
