package postgres

import (
	"bytes"
	"context"
	"iter"
	"slices"
	"sort"

	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/memtable"
	"github.com/lineage-store/lineage/structure"
)

// table has the entries and commits of a state, for package read. It keeps what was fetched, and fetches the rest from the
// server. It serves one call or one batch, and is not safe for concurrent use.
type table struct {
	ctx   context.Context
	cache *cache
	store [16]byte
	state state
	// damaged, when not nil, is called for what is damaged in pages. If it is nil, damage is an error.
	damaged func(key []byte, what string)
	// fetch reads as of the state.
	fetch func(context.Context, need) (found, error)

	values map[string][]byte // of keys; nil for none
	ranges []fetchedRange
	lasts  map[string]index.Entry // of the spans of a run, by their prefix
	size   int                    // of values and ranges
	older  struct {               // what was fetched before that
		values map[string][]byte
		ranges []fetchedRange
	}
	bytes   int64                   // of entries that batches brought
	ordered map[string]*orderedPage // of listings, by direction and the end of the range
	scanned orderedPage             // the last page of a scan: another scan may begin in it

	rows     map[uint64]*row // of the log, by number, as they were fetched
	rowBytes int
	wanted   []uint64    // rows that were asked for and were not fetched, because others were large
	current  *decodedRow // the row that was read last

	// For a batch: the entries of the commits that were judged, and these commits, by the first number of their row.
	overlay    *memtable.Table
	ownCommits map[uint64][]embedded.Sequenced
	// absent, when not nil, collects keys that are assumed to have no entries: see assumeAbsent.
	absent map[string]struct{}
}

type fetchedRange struct {
	read.Range
	entries []index.Entry
}

// orderedPage is a page of a listing or a scan. It has all entries from low to high. high is nil at the end of the range of a
// scan.
type orderedPage struct {
	low, high []byte
	to        []byte // the end of the range of a scan
	entries   []index.Entry
}

// has reports whether a page of a scan has the first entry of another scan of the range.
func (p *orderedPage) has(from, to []byte) bool {
	return p.low != nil && bytes.Equal(p.to, to) && bytes.Compare(p.low, from) <= 0 && (p.high == nil || bytes.Compare(from, p.high) < 0)
}

func newTable(ctx context.Context, c *cache, store [16]byte, st state, fetch func(context.Context, need) (found, error)) *table {
	return &table{ctx: ctx, cache: c, store: store, state: st, fetch: fetch, values: make(map[string][]byte), lasts: make(map[string]index.Entry)}
}

var (
	_ read.Index      = (*table)(nil)
	_ read.Commits    = (*table)(nil)
	_ read.Packs      = (*table)(nil)
	_ read.Prefetcher = (*table)(nil)
)

// view returns the view that reads from the table.
func (t *table) view() *read.View {
	v := &read.View{Index: t, Commits: t, Packs: t, Ahead: t, Digests: t.cache}
	if !t.state.collecting { // else frames may have what a collection removed
		v.Frames = &t.cache.frames
	}
	return v
}

// mostKept limits the entries that a table keeps, in bytes. Tests make it smaller.
var mostKept = 4 << 20

// take keeps what was fetched. Outside of a batch, what was fetched long before is dropped when it takes much memory: listings
// and paths no longer need it.
func (t *table) take(n need, f found) error {
	if t.overlay == nil && t.size > mostKept {
		t.older.values, t.older.ranges = t.values, t.ranges
		t.values, t.ranges, t.size = make(map[string][]byte), nil, 0
		clear(t.lasts)
	}
	for _, k := range n.Keys {
		t.set(k, f.keys[string(k)])
	}
	for k, v := range f.keys { // others of the same groups, which perhaps nobody reads: they are not cached
		if _, known := t.values[k]; !known {
			t.keep([]byte(k), v)
		}
	}
	for i, r := range n.Ranges {
		t.ranges = append(t.ranges, fetchedRange{r, f.ranges[i]})
		for _, e := range f.ranges[i] {
			t.size += len(e.Key) + len(e.Value) + overhead
		}
	}
	for i, r := range n.Lasts {
		if t.lasts[string(r.From)] = f.lasts[i]; f.lasts[i].Key != nil {
			t.set(f.lasts[i].Key, f.lasts[i].Value)
		}
	}
	t.takeRows(n.rows, f.rows)
	return nil
}

func (t *table) keep(key, value []byte) {
	t.values[string(key)] = value
	t.size += len(key) + len(value) + overhead
}

// set keeps an entry, and caches it for others.
func (t *table) set(key, value []byte) {
	t.keep(key, value)
	if value != nil {
		t.cache.putEntry(key, value, t.state.Number)
	}
}

// forgetPages forgets what only one batch or call needs.
func (t *table) forgetPages() {
	t.ordered, t.scanned, t.rows, t.rowBytes, t.wanted, t.current = nil, orderedPage{}, nil, 0, nil, nil
}

// Prefetch implements read.Prefetcher.
func (t *table) Prefetch(ctx context.Context, want read.Need) error {
	some := want
	some.Lasts = slices.DeleteFunc(slices.Clone(want.Lasts), t.unfoldedLast)
	return t.prefetch(ctx, some, t.look)
}

// prefetch fetches what is not known. look returns the values of known keys.
func (t *table) prefetch(ctx context.Context, want read.Need, look func(key []byte) (value []byte, known bool)) error {
	var n need
	for _, k := range want.Keys {
		if _, known := look(k); !known && !t.assumeAbsent(k) {
			n.Keys = append(n.Keys, k)
		}
	}
	for _, r := range want.Ranges {
		if t.covering(r.From, r.To) == nil {
			n.Ranges = append(n.Ranges, r)
		}
	}
	for _, r := range want.Lasts {
		if _, known := t.lasts[string(r.From)]; !known && ofRun(r) { // others are read when they are asked for
			n.Lasts = append(n.Lasts, r)
		}
	}
	asked := make(map[uint64]struct{}, len(want.Commits))
	for _, p := range want.Commits {
		first := uint64(p.Offset)
		if _, known := asked[first]; known || t.hasRow(first) {
			continue
		}
		asked[first] = struct{}{}
		n.rows = append(n.rows, first)
	}
	return t.read(ctx, n)
}

// read fetches what is needed, if that is anything.
func (t *table) read(ctx context.Context, n need) error {
	if len(n.Keys)+len(n.Ranges)+len(n.Lasts)+len(n.rows) == 0 {
		return nil
	}
	f, err := t.fetch(ctx, n)
	if err != nil {
		return err
	}
	return t.take(n, f)
}

// assumable reports whether a key is in a table for which a lookup usually finds nothing, because commits bring new ids.
func assumable(key []byte) bool {
	switch key[0] {
	case keys.TableBlock, keys.TableChunk, keys.TableSpan, keys.TableRun, keys.TableCutRun, keys.TableContext, keys.TableTip, keys.TableRemnant, keys.TableSpanSet, keys.TableThread, keys.TableErased:
		return true
	}
	return false
}

// assumeAbsent assumes that a key that is not known has no entry, if that is likely and allowed, and reports whether it does.
// Writing the row checks the assumptions.
func (t *table) assumeAbsent(key []byte) bool {
	if t.absent == nil || !assumable(key) {
		return false
	}
	t.absent[string(key)] = struct{}{}
	t.values[string(key)] = nil
	return true
}

// look looks up a key in what is unfolded and in what was fetched. A nil value means that there is no entry.
func (t *table) look(key []byte) (value []byte, known bool) {
	if value, known = t.state.unfolded.get(key); known || t.afterLastSpan(key) {
		return value, true
	}
	return t.lookStored(key)
}

// lookStored is look in what was fetched only.
func (t *table) lookStored(key []byte) (value []byte, known bool) {
	if value, known = t.values[string(key)]; known {
		return value, true
	}
	if value, known = t.older.values[string(key)]; known {
		return value, true
	}
	if value, known = t.cache.entry(key, t.state.Number); known {
		return value, true
	}
	if isSpan(key) {
		if last, known := t.lasts[string(key[:spanPrefix])]; known && bytes.Compare(key, last.Key) > 0 {
			return nil, true
		}
	}
	if r := t.covering(key, append(bytes.Clone(key), 0)); r != nil {
		if i := r.search(key); i < len(r.entries) && bytes.Equal(r.entries[i].Key, key) {
			return r.entries[i].Value, true
		}
		return nil, true
	}
	return nil, false
}

func (r *fetchedRange) search(key []byte) int {
	return sort.Search(len(r.entries), func(i int) bool { return bytes.Compare(r.entries[i].Key, key) >= 0 })
}

// covering returns a fetched range that has all entries with from <= key < to.
func (t *table) covering(from, to []byte) *fetchedRange {
	for _, ranges := range [][]fetchedRange{t.ranges, t.older.ranges} {
		for i := range ranges {
			r := &ranges[i]
			if bytes.Compare(r.From, from) <= 0 && (r.To == nil || to != nil && bytes.Compare(to, r.To) <= 0) {
				return r
			}
		}
	}
	return nil
}

// Get implements read.Getter.
func (t *table) Get(key []byte) ([]byte, bool, error) {
	if t.overlay != nil {
		if v, ok := t.overlay.Latest().Get(key); ok {
			return v, v != nil, nil
		}
	}
	v, known := t.look(key)
	if !known && !t.assumeAbsent(key) {
		key = bytes.Clone(key)
		if err := t.read(t.ctx, need{Need: read.Need{Keys: [][]byte{key}}}); err != nil {
			return nil, false, err
		}
		v, _ = t.look(key) // reading may have moved the table to a later state
	}
	return v, v != nil, nil
}

// Own implements read.Packs.
func (t *table) Own(key []byte) ([]byte, bool, error) { return t.Get(key) }

// The first page of a scan is small: many readers want one entry.
const (
	firstPage = 32
	fullPage  = 512
)

// stored yields the entries of the server.
func (t *table) stored(from, to []byte) iter.Seq2[index.Entry, error] {
	return func(yield func(index.Entry, error) bool) {
		if from == nil {
			from = []byte{}
		}
		for limit := firstPage; from != nil; limit = fullPage {
			if r := t.covering(from, to); r != nil {
				for _, e := range r.entries[r.search(from):] {
					if to != nil && bytes.Compare(e.Key, to) >= 0 || !yield(e, nil) {
						return
					}
				}
				return
			}
			p := t.scanned
			if !p.has(from, to) {
				some, next, err := t.page(from, to, limit)
				if err == nil {
					err = t.related(some)
				}
				if err != nil {
					yield(index.Entry{}, err)
					return
				}
				p = orderedPage{bytes.Clone(from), next, to, some}
				t.scanned = p
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
func (t *table) page(from, to []byte, limit int) (some []index.Entry, next []byte, err error) {
	f, err := t.fetch(t.ctx, need{pages: []page{{read.Range{From: from, To: to}, limit, false}}, damaged: t.damaged})
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

// related fetches the entries that the entries of a page refer to: readers of lists read them next.
func (t *table) related(page []index.Entry) error {
	var n read.Need
	get := func(table byte, id []byte) { n.Keys = append(n.Keys, keys.Of(table, id)) }
	for _, e := range page {
		k := e.Key
		id := func() []byte { return k[max(1, len(k)-16):] }
		switch k[0] {
		case keys.TableContextOfThread, keys.TableChildOfContext:
			get(keys.TableContext, id())
			get(keys.TableTip, id())
		case keys.TableContext:
			get(keys.TableTip, id())
		case keys.TableForkOfRun, keys.TableRunOfThread:
			get(keys.TableRun, id())
		case keys.TableThreadBySource, keys.TableThreadByTitle, keys.TableThreadByTime:
			get(keys.TableThread, id())
		case keys.TableThreadByEnd:
			n.Keys = append(n.Keys, keys.Of(keys.TableThread, k[5:], k[1:5]))
		case keys.TableBranchOfContext:
			n.Keys = append(n.Keys, keys.Of(keys.TableBranch, k[1:17], k[33:]))
		case keys.TableBranchBySource:
			n.Keys = append(n.Keys, keys.Of(keys.TableBranch, k[len(k)-16:], e.Value))
		case keys.TableCheckpointBySource:
			n.Keys = append(n.Keys, keys.Of(keys.TableCheckpoint, k[len(k)-16:], e.Value))
		case keys.TableSpanBySource:
			if _, ref, err := keys.ReadLookup(k); err == nil {
				get(keys.TableRun, ref.Run[:])
			}
		}
	}
	if err := t.Prefetch(t.ctx, n); err != nil {
		return err
	}
	// The time of the last message of a thread is found by its record.
	n = read.Need{}
	for _, e := range page {
		switch e.Key[0] {
		case keys.TableThreadBySource, keys.TableThreadByTitle, keys.TableThreadByTime:
			if err := t.needLastMessage(&n, structure.ThreadID(e.Key[len(e.Key)-16:])); err != nil {
				return err
			}
		}
	}
	return t.Prefetch(t.ctx, n)
}

func (t *table) needLastMessage(n *read.Need, id structure.ThreadID) error {
	v, ok, err := t.Get(keys.Of(keys.TableThread, id[:]))
	if err != nil || !ok {
		return err
	}
	thread, err := keys.Record[*structure.Thread](structure.KindThread, v, id.String())
	if err == nil {
		n.Keys = append(n.Keys, keys.AppendMessage(nil, thread.Home()))
	}
	return err
}

// Scan implements read.Scanner.
func (t *table) Scan(from, to []byte) iter.Seq2[index.Entry, error] {
	below := t.stored(from, to)
	if u := t.state.unfolded.between(from, to); len(u) > 0 {
		below = merged(below, func() sorted { return &list{u} }, to)
	}
	if t.overlay == nil || t.overlay.Len() == 0 {
		return below
	}
	return merged(below, func() sorted { c := t.overlay.Latest().Seek(from); return &c }, to)
}

// sorted iterates over entries in order. An entry without a value is a deletion.
type sorted interface {
	Valid() bool
	Key() []byte
	Value() []byte
	Next()
}

// list is a sorted list.
type list struct{ entries []index.Entry }

func (l *list) Valid() bool   { return len(l.entries) > 0 }
func (l *list) Key() []byte   { return l.entries[0].Key }
func (l *list) Value() []byte { return l.entries[0].Value }
func (l *list) Next()         { l.entries = l.entries[1:] }

// merged yields entries up to a key, with others that replace them.
func merged(below iter.Seq2[index.Entry, error], above func() sorted, to []byte) iter.Seq2[index.Entry, error] {
	return func(yield func(index.Entry, error) bool) {
		mine := above()
		upTo := func(key []byte) bool { // yields entries of the batch before a key; nil for no end
			for ; mine.Valid() && (key == nil || bytes.Compare(mine.Key(), key) < 0); mine.Next() {
				if v := mine.Value(); v != nil && !yield(index.Entry{Key: mine.Key(), Value: v}, nil) {
					return false
				}
			}
			return true
		}
		for e, err := range below {
			if err != nil {
				yield(e, err)
				return
			}
			if !upTo(e.Key) {
				return
			}
			if mine.Valid() && bytes.Equal(mine.Key(), e.Key) {
				continue // it is yielded before the next
			}
			if !yield(e, nil) {
				return
			}
		}
		upTo(to)
	}
}

// Last implements read.Index.
func (t *table) Last(from, to []byte) (index.Entry, bool, error) {
	below := t.lastStored
	if some := t.state.unfolded.between(from, to); len(some) > 0 {
		if !t.unfoldedLast(read.Range{From: from, To: to}) {
			return t.lastScanned(from, to)
		}
		below = func([]byte, []byte) (index.Entry, bool, error) { return some[len(some)-1], true, nil }
	}
	if t.overlay != nil && t.overlay.Len() > 0 {
		if k, v, ok := t.overlay.Latest().Last(to); ok && bytes.Compare(k, from) >= 0 {
			if v == nil { // the last one was deleted
				return t.lastScanned(from, to)
			}
			if e, ok, err := below(from, to); err != nil || ok && bytes.Compare(e.Key, k) > 0 {
				return e, ok, err
			}
			return index.Entry{Key: k, Value: v}, true, nil
		}
	}
	return below(from, to)
}

// lastScanned is Last by reading the range.
func (t *table) lastScanned(from, to []byte) (last index.Entry, ok bool, err error) {
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

func (t *table) lastStored(from, to []byte) (index.Entry, bool, error) {
	if e, known := t.lasts[string(from)]; known && ofRun(read.Range{From: from, To: to}) {
		return e, e.Key != nil, nil
	}
	if r := t.covering(from, to); r != nil {
		end := len(r.entries)
		if to != nil {
			end = r.search(to)
		}
		if end == 0 || bytes.Compare(r.entries[end-1].Key, from) < 0 {
			return index.Entry{}, false, nil
		}
		return r.entries[end-1], true, nil
	}
	f, err := t.fetch(t.ctx, need{pages: []page{{read.Range{From: from, To: to}, 1, true}}})
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
func (t *table) Cursor(from, to []byte) read.Cursor { return &cursor{t: t, from: from, to: to} }

// cursor reads entries page by page.
type cursor struct {
	t        *table
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

// FirstDerived implements read.Derived. Readers ask for the first entry from a key on, and then for the first after that.
func (t *table) FirstDerived(from, to []byte) (index.Entry, bool, error) {
	o := t.orderedPage('+', to)
	for at := from; ; {
		if bytes.Compare(o.low, at) <= 0 && bytes.Compare(at, o.high) < 0 {
			i := sort.Search(len(o.entries), func(i int) bool { return bytes.Compare(o.entries[i].Key, at) >= 0 })
			if i < len(o.entries) {
				return o.entries[i], true, nil
			}
			at = o.high
		}
		if bytes.Compare(at, to) >= 0 {
			return index.Entry{}, false, nil
		}
		p, err := t.orderedFrom(page{read.Range{From: at, To: to}, firstPage, false})
		if err != nil {
			return index.Entry{}, false, err
		}
		*o = orderedPage{low: bytes.Clone(at), high: bytes.Clone(to), entries: p.entries}
		if p.more {
			o.high = append(p.next, 0)
		}
	}
}

// LastDerived implements read.Derived. Readers ask for the last entry before a key, and then for the last before that.
func (t *table) LastDerived(from, to []byte) (index.Entry, bool, error) {
	o := t.orderedPage('-', from)
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
		p, err := t.orderedFrom(page{read.Range{From: from, To: before}, firstPage, true})
		if err != nil {
			return index.Entry{}, false, err
		}
		*o = orderedPage{low: bytes.Clone(from), high: bytes.Clone(before), entries: p.entries}
		if p.more {
			o.low = p.next
		}
	}
}

// orderedPage returns the page that was read last in a direction of a range with an end.
func (t *table) orderedPage(direction byte, end []byte) *orderedPage {
	key := string(direction) + string(end)
	o := t.ordered[key]
	if o == nil {
		if o = new(orderedPage); t.ordered == nil {
			t.ordered = make(map[string]*orderedPage)
		}
		t.ordered[key] = o
	}
	return o
}

func (t *table) orderedFrom(p page) (foundPage, error) {
	f, err := t.fetch(t.ctx, need{pages: []page{p}})
	if err == nil {
		err = t.related(f.pages[0].entries)
	}
	if err != nil {
		return foundPage{}, err
	}
	return f.pages[0], nil
}

// Changed implements read.Derived. What the listing of changed threads needs is fetched at once.
func (t *table) Changed(prefix []byte) iter.Seq[index.Entry] {
	of := func(prefix []byte) iter.Seq[index.Entry] {
		return slices.Values(t.state.unfolded.between(prefix, keys.PrefixEnd(prefix)))
	}
	var n read.Need
	ids := slices.Compact(read.ChangedThreads(of))
	for _, id := range ids {
		n.Keys = append(n.Keys, keys.Of(keys.TableThread, id[:]))
	}
	if t.Prefetch(t.ctx, n) == nil { // an error comes back when they are read
		n = read.Need{}
		for _, id := range ids {
			_ = t.needLastMessage(&n, id)
		}
		_ = t.Prefetch(t.ctx, n)
	}
	return of(prefix)
}

// ManyChanged implements read.Derived.
func (t *table) ManyChanged() {}

// State implements read.Index.
func (t *table) State() index.State { return t.state.of(t.store) }

// Name implements read.Index.
func (t *table) Name() string { return "lineage_entry" }

// Close implements read.Index.
func (t *table) Close() {}
