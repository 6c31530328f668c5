package search

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/lineage-store/lineage/internal/query"
	"github.com/lineage-store/lineage/internal/searched"
)

// find returns the best matches in a view.
func (f *finding) find(ctx context.Context) ([]Hit, error) {
	size, err := f.view.Find(ctx, &f.scope, f.matcher.Leaves(), f.matcher.Condition(), f)
	if err != nil {
		return nil, err
	}
	return f.hits(ctx, size)
}

// Reset implements searched.Collector.
func (f *finding) Reset() { f.found = make(map[address]*candidate) }

// Add implements searched.Collector.
func (f *finding) Add(o searched.Occurrence) {
	p := address{o.Run, o.Seq, o.Head}
	if f.steps {
		p.head = 0
	}
	c := f.found[p]
	if c == nil {
		c = &candidate{role: o.Role}
		f.found[p] = c
	}
	n := len(c.texts) - 1
	for n >= 0 && c.texts[n] != o.Text {
		n--
	}
	if n < 0 {
		if n = len(c.texts); n == query.MaxPieces {
			return
		}
		c.texts = append(c.texts, o.Text)
		c.words += o.Words
	}
	c.places = append(c.places, leafAt{o.Leaf, int32(n)*query.PieceWords + o.At})
}

// hits returns the best matches, with their content in the store.
func (f *finding) hits(ctx context.Context, size int) ([]Hit, error) {
	var matches query.Matches
	f.order = nil
	for p, c := range f.found {
		matched := f.matcher.MatchPlaces(func(place func(leaf int, at int32)) {
			for _, l := range c.places {
				place(int(l.leaf), l.at)
			}
		})
		if matched {
			id := binary.BigEndian.AppendUint64(nil, uint64(len(f.order)))
			f.order = append(f.order, p)
			matches.Add("", id, p.run<<32+p.seq, int(c.words), f.matcher.Found)
		}
	}
	if len(f.order) == 0 {
		return nil, nil
	}
	matches.Rank(map[string]int{"": size})
	var hits []Hit
	for done, ask := 0, f.Limit; len(hits) < f.Limit && done < len(f.order); ask *= 2 {
		best := matches.Best(ask)
		locations, err := f.locations(ctx, &matches, best[done:])
		if err != nil {
			return nil, err
		}
		for i, m := range best[done:] {
			h, err := f.show(ctx, f.order[binary.BigEndian.Uint64(matches.ID(&m))], &locations[i], f.match)
			if errors.Is(err, errStale) {
				continue
			}
			if err != nil {
				return nil, err
			}
			h.Rank = m.Rank
			if hits = append(hits, h); len(hits) == f.Limit {
				break
			}
		}
		done = len(best)
	}
	return hits, nil
}

// locations describes matches.
func (f *finding) locations(ctx context.Context, all *query.Matches, some []query.Match) ([]searched.Location, error) {
	addresses := make([]searched.Address, len(some))
	for i := range some {
		p := f.order[binary.BigEndian.Uint64(all.ID(&some[i]))]
		addresses[i] = searched.Address{Run: p.run, Seq: p.seq, Head: p.head, Role: f.found[p].role}
	}
	return f.view.Locations(ctx, &f.scope, addresses)
}
