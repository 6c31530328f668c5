package postgres

import (
	"bytes"
	"context"
	"slices"

	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/internal/index"
)

// stateReader reads the entries and commits of a state, for package read. It keeps what was fetched, and fetches the rest from the
// server. It serves one call or one batch, and is not safe for concurrent use.
type stateReader struct {
	ctx   context.Context
	cache *cache
	store [16]byte
	state state
	// damaged, when not nil, is called for what is damaged in pages. If it is nil, damage is an error.
	damaged func(key []byte, what string)
	// fetch reads as of the state.
	fetch func(context.Context, need) (fetchResult, error)

	fetched fetched
	pages   pages
	rows    logRows
	added   *additions // nil outside of a batch
	settled int64      // the size of what earlier batches added, in bytes
}

func newStateReader(ctx context.Context, c *cache, store [16]byte, st state, fetch func(context.Context, need) (fetchResult, error)) *stateReader {
	return &stateReader{ctx: ctx, cache: c, store: store, state: st, fetch: fetch, fetched: newFetched()}
}

var (
	_ read.Index      = (*stateReader)(nil)
	_ read.Commits    = (*stateReader)(nil)
	_ read.Packs      = (*stateReader)(nil)
	_ read.Prefetcher = (*stateReader)(nil)
)

// view returns the view that reads through t.
func (t *stateReader) view() *read.View {
	v := &read.View{Index: t, Commits: t, Packs: t, Ahead: t, Digests: t.cache}
	if !t.state.collecting { // else frames may have what a collection removed
		v.Frames = &t.cache.frames
	}
	return v
}

// take keeps what was fetched. Outside of a batch, what was fetched long before is dropped when it takes much memory: listings
// and paths no longer need it.
func (t *stateReader) take(n need, f fetchResult) {
	if t.added == nil {
		t.fetched.age()
	}
	for _, k := range n.Keys {
		t.set(k, f.keys[string(k)])
	}
	for k, v := range f.keys { // others of the same groups, which perhaps nobody reads: they are not cached
		if _, known := t.fetched.recent.values[k]; !known {
			t.fetched.keep([]byte(k), v)
		}
	}
	for i, r := range n.Ranges {
		t.fetched.keepRange(r, f.ranges[i])
	}
	for i, r := range n.Lasts {
		if t.fetched.lasts[string(r.From)] = f.lasts[i]; f.lasts[i].Key != nil {
			t.set(f.lasts[i].Key, f.lasts[i].Value)
		}
	}
	t.rows.keep(n.rows, f.rows)
	t.rows.wanted = slices.DeleteFunc(t.rows.wanted, t.hasRow)
}

// set keeps an entry, and caches it for others.
func (t *stateReader) set(key, value []byte) {
	t.fetched.keep(key, value)
	if value != nil {
		t.cache.putEntry(key, value, t.state.Number)
	}
}

// settle moves the reader to the state after the row that wrote the entries, for the next batch.
func (t *stateReader) settle(st state, entries []entryVersion) {
	written := ungrouped(entries)
	t.state = st
	for i, e := range written {
		written[i] = index.Entry{Key: bytes.Clone(e.Key), Value: bytes.Clone(e.Value)}
		t.set(written[i].Key, written[i].Value)
	}
	t.fetched.keepWritten(written)
	t.settled += t.added.entries.Bytes()
	t.added, t.pages, t.rows = nil, pages{}, logRows{}
}

// Prefetch implements read.Prefetcher.
func (t *stateReader) Prefetch(ctx context.Context, want read.Need) error {
	some := want
	some.Lasts = slices.DeleteFunc(slices.Clone(want.Lasts), t.unfoldedLast)
	return t.prefetch(ctx, some, t.look)
}

// prefetch fetches what is not known. look returns the values of known keys.
func (t *stateReader) prefetch(ctx context.Context, want read.Need, look func(key []byte) (value []byte, known bool)) error {
	var n need
	for _, k := range want.Keys {
		if _, known := look(k); !known && !t.assumeAbsent(k) {
			n.Keys = append(n.Keys, k)
		}
	}
	for _, r := range want.Ranges {
		if t.fetched.covering(r.From, r.To) == nil {
			n.Ranges = append(n.Ranges, r)
		}
	}
	for _, r := range want.Lasts {
		if _, known := t.fetched.lasts[string(r.From)]; !known && ofRun(r) { // others are read when they are asked for
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

// read fetches what is needed, and keeps it. If nothing is needed, it does nothing.
func (t *stateReader) read(ctx context.Context, n need) error {
	if len(n.Keys)+len(n.Ranges)+len(n.Lasts)+len(n.rows) == 0 {
		return nil
	}
	f, err := t.fetch(ctx, n)
	if err != nil {
		return err
	}
	t.take(n, f)
	return nil
}

// assumeAbsent assumes that a key that is not known has no entry, if that is likely and allowed, and reports whether it does.
func (t *stateReader) assumeAbsent(key []byte) bool {
	if !t.added.assumeAbsent(key) {
		return false
	}
	t.fetched.recent.values[string(key)] = nil
	return true
}

// look looks up a key in what is unfolded and in what was fetched. A nil value means that there is no entry.
func (t *stateReader) look(key []byte) (value []byte, known bool) {
	if value, known = t.state.unfolded.get(key); known || t.afterLastSpan(key) {
		return value, true
	}
	return t.lookStored(key)
}

// lookStored looks only in what was fetched.
func (t *stateReader) lookStored(key []byte) (value []byte, known bool) {
	if value, known = t.fetched.value(key); known {
		return value, true
	}
	if value, known = t.cache.entry(key, t.state.Number); known {
		return value, true
	}
	return t.fetched.valueInRange(key)
}

// afterLastSpan reports whether a key is known to be after the last span of its run.
func (t *stateReader) afterLastSpan(key []byte) bool {
	if isSpan(key) {
		if u := t.state.unfolded.spansOf(key); len(u) > 0 {
			return bytes.Compare(key, u[len(u)-1].Key) > 0
		}
	}
	return t.fetched.afterLast(key)
}

// unfoldedLast reports whether what is unfolded has the last entry of a range.
func (t *stateReader) unfoldedLast(r read.Range) bool {
	return ofRun(r) && len(t.state.unfolded.spansOf(r.From)) > 0
}

// Get implements read.Getter.
func (t *stateReader) Get(key []byte) ([]byte, bool, error) {
	if v, ok := t.added.get(key); ok {
		return v, v != nil, nil
	}
	v, known := t.look(key)
	if !known && !t.assumeAbsent(key) {
		key = bytes.Clone(key)
		if err := t.read(t.ctx, need{Need: read.Need{Keys: [][]byte{key}}}); err != nil {
			return nil, false, err
		}
		v, _ = t.look(key) // reading may have moved the reader to a later state
	}
	return v, v != nil, nil
}

// Own implements read.Packs.
func (t *stateReader) Own(key []byte) ([]byte, bool, error) { return t.Get(key) }

// State implements read.Index.
func (t *stateReader) State() index.State { return t.state.inIndex(t.store) }

// Name implements read.Index.
func (t *stateReader) Name() string { return "lineage_entry" }

// Close implements read.Index.
func (t *stateReader) Close() {}

// hasRow reports whether a row of the log was fetched or is cached.
func (t *stateReader) hasRow(first uint64) bool {
	_, known := t.knownCommits(first)
	_, fetched := t.rows.fetched[first]
	return known || fetched
}

// knownCommits returns the commits of a row of the log, if they are here. While rows may have what a collection removed, the cache is
// not used: later states read the row without that.
func (t *stateReader) knownCommits(first uint64) ([]embedded.Sequenced, bool) {
	if own, ok := t.added.commitsOf(first); ok {
		return own, true
	}
	if t.rows.current != nil && t.rows.current.first == first {
		return t.rows.current.commits, true
	}
	if t.state.collecting {
		return nil, false
	}
	return t.cache.row(first)
}
