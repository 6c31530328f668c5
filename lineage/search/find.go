package search

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/lineage-store/lineage/internal/query"
	"github.com/lineage-store/lineage/internal/searched"
	"github.com/lineage-store/lineage/internal/varint"
)

// find returns the best matches in the view. What it finds in an index that is behind the store, it compares with the store.
func (f *activeSearch) find(ctx context.Context) ([]Hit, error) {
	defer f.matches.Close()
	if f.present = nil; f.scope.Unsettled {
		f.present = newPresent(f.store, f.scope.User)
		defer f.present.close()
	}
	size, err := f.view.Find(ctx, &f.scope, f.matcher.Leaves(), f.matcher.Condition(), f)
	if err != nil {
		return nil, err
	}
	f.settle()
	return f.hits(ctx, size)
}

// Reset implements searched.Collector.
func (f *activeSearch) Reset() {
	f.matches.Close()
	f.current.begin(address{}, 0)
}

// Add implements searched.Collector.
func (f *activeSearch) Add(o searched.Occurrence) {
	at := address{o.Run, o.Seq, o.Head}
	if f.steps {
		at.head = 0
	}
	c := &f.current
	if c.address != at {
		f.settle()
		c.begin(at, o.Role)
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

// begin begins another candidate, in the memory of the one before.
func (c *candidate) begin(at address, role int64) {
	*c = candidate{address: at, role: role, texts: c.texts[:0], places: c.places[:0]}
}

// settle adds the current candidate to the matches, if it is one.
func (f *activeSearch) settle() {
	c := &f.current
	if len(c.places) == 0 {
		return
	}
	matched := f.matcher.MatchPlaces(func(place func(leaf int, at int32)) {
		for _, l := range c.places {
			place(int(l.leaf), l.at)
		}
	})
	if matched {
		f.id = c.appendID(f.id[:0])
		f.matches.Add("", f.id, c.run<<32+c.seq, int(c.words), f.matcher.Found)
	}
}

// appendID appends the id of a match. Ids of the same step sort by the head.
func (c *candidate) appendID(id []byte) []byte {
	id = binary.BigEndian.AppendUint32(id, uint32(c.head))
	for _, n := range []int64{c.run, c.seq, c.role} {
		id = binary.AppendUvarint(id, uint64(n))
	}
	return id
}

// addressOf returns the address with an id.
func addressOf(id []byte) searched.Address {
	r := varint.Reader{Rest: id[4:]}
	return searched.Address{Head: int(binary.BigEndian.Uint32(id)), Run: int64(r.Next()), Seq: int64(r.Next()), Role: int64(r.Next())}
}

// hits returns the best matches, with their content in the store.
func (f *activeSearch) hits(ctx context.Context, size int) ([]Hit, error) {
	if f.matches.Len() == 0 {
		return nil, nil
	}
	if err := f.matches.Rank(map[string]int{"": size}); err != nil {
		return nil, err
	}
	var hits []Hit
	for done, ask := 0, f.Limit; len(hits) < f.Limit && done < f.matches.Len(); ask *= 2 {
		best := f.matches.Best(ask)
		addresses := make([]searched.Address, len(best)-done)
		for i, m := range best[done:] {
			addresses[i] = addressOf(m.ID)
		}
		locations, err := f.view.Locations(ctx, &f.scope, addresses)
		if err != nil {
			return nil, err
		}
		f.readAhead(ctx, addresses, locations)
		for i, m := range best[done:] {
			a := addresses[i]
			h, err := f.show(ctx, address{a.Run, a.Seq, a.Head}, &locations[i], f.match)
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
