package postgres

import (
	"bytes"
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/internal/index"
)

// temporary is a sink in a temporary index.
type temporary struct {
	engine *Engine
	db     *index.DB
	epoch  uint64
	state  state
}

func (s *temporary) begin(context.Context, uint64) (state, func(context.Context, need) (fetchResult, error), error) {
	s.state.epoch = s.epoch
	return s.state, s.fetch, nil
}

func (s *temporary) end(_ context.Context, st state, entries []entryVersion) error {
	s.state = st
	s.db.Apply(st.inIndex(s.engine.log.identity), ungrouped(entries))
	return s.db.Throttle()
}

func (s *temporary) abandon() {}

// fetch reads entries of the index, and rows of the server.
func (s *temporary) fetch(ctx context.Context, n need) (f fetchResult, err error) {
	at := s.db.Snapshot()
	defer at.Close()
	if f, err = (indexReader{at}).fetch(n); err != nil || len(n.rows) == 0 {
		return f, err
	}
	rows := need{rows: n.rows}
	var read fetchResult
	err = s.engine.log.readRetried(ctx, func(b *pgx.Batch) { rows.queue(b, s.engine.log, s.epoch, unlimited, &read) })
	f.rows = read.rows
	return f, err
}

// indexReader reads entries of an index. They do not share its memory.
type indexReader struct{ *index.Snapshot }

// fetch reads the entries that are needed.
func (r indexReader) fetch(n need) (f fetchResult, err error) {
	f.keys = make(map[string][]byte, len(n.Keys))
	for _, k := range n.Keys {
		v, ok, err := r.Get(k)
		if err != nil {
			return f, err
		}
		if ok {
			f.keys[string(k)] = bytes.Clone(present(v))
		}
	}
	f.ranges = make([][]index.Entry, len(n.Ranges))
	for i, in := range n.Ranges {
		if f.ranges[i], err = r.all(in, 0); err != nil {
			return f, err
		}
	}
	f.lasts = make([]index.Entry, len(n.Lasts))
	for i, in := range n.Lasts {
		if f.lasts[i], err = r.last(in); err != nil {
			return f, err
		}
	}
	f.pages = make([]foundPage, len(n.pages))
	for i, p := range n.pages {
		if f.pages[i], err = r.page(p); err != nil {
			return f, err
		}
	}
	return f, nil
}

func cloned(e index.Entry) index.Entry {
	return index.Entry{Key: bytes.Clone(e.Key), Value: bytes.Clone(present(e.Value))}
}

// all returns the entries of a range; if most is not 0, only the first ones.
func (r indexReader) all(in read.Range, most int) (all []index.Entry, err error) {
	for e, err := range r.Scan(in.From, in.To) {
		if err != nil {
			return nil, err
		}
		if all = append(all, cloned(e)); len(all) == most {
			break
		}
	}
	return all, nil
}

// last returns the last entry of a range, without a key if there is none.
func (r indexReader) last(in read.Range) (index.Entry, error) {
	e, ok, err := r.Last(in.From, in.To)
	if err != nil || !ok {
		return index.Entry{}, err
	}
	return cloned(e), nil
}

// page returns a page. One that descends has one entry.
func (r indexReader) page(p entryPage) (f foundPage, err error) {
	if p.descending {
		var e index.Entry
		if e, err = r.last(p.Range); e.Key != nil {
			f.entries, f.more = []index.Entry{e}, true
		}
	} else {
		f.entries, err = r.all(p.Range, p.limit)
		f.more = len(f.entries) == p.limit
	}
	if n := len(f.entries); n > 0 {
		f.next = f.entries[n-1].Key
	}
	return f, err
}
