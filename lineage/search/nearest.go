package search

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/lineage-store/lineage/internal/derivedfile"
	"github.com/lineage-store/lineage/internal/query"
	"github.com/lineage-store/lineage/internal/vector"
)

// nearText is a text with a vector, and its similarity to the vector searched for.
type nearText struct {
	id         textID
	number     int64
	similarity float64
}

// nearest returns the hits whose texts are nearest to the vector. It compares the vectors of all texts
// in scope.
func (f *finding) nearest(ctx context.Context) (hits []Hit, err error) {
	scope, roles, args := f.visible()
	var near []nearText
	var v []float32
	err = derivedfile.Each(ctx, f.conn, func(scan func(...any) error) error {
		var t nearText
		var id, b sql.RawBytes
		if err := scan(&t.number, &id, &b); err != nil {
			return err
		}
		if len(id) != len(t.id) {
			return fmt.Errorf("text %d: %w", t.number, derivedfile.ErrUseless)
		}
		v = vector.Decode(v[:0], b)
		var ok bool
		if t.similarity, ok = vector.Cosine(v, f.Vector); ok {
			t.id = textID(id)
			near = append(near, t)
		}
		return nil
	}, `SELECT v.text, v.id, v.vector FROM vectors v WHERE EXISTS (SELECT 1 FROM usages u `+scope+` WHERE u.text = v.text`+roles+`)`, args...)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(near, func(a, b nearText) int {
		return cmp.Or(cmp.Compare(b.similarity, a.similarity), cmp.Compare(b.number, a.number))
	})
	shown := make(map[address]bool) // a message may have several texts
	for _, t := range near {
		places, err := f.placesOf(ctx, t.number)
		if err != nil {
			return nil, err
		}
		for _, p := range places {
			if shown[p.address] {
				continue
			}
			shown[p.address] = true
			h, err := f.show(ctx, p.address, p.role, t.match)
			if errors.Is(err, errStale) {
				continue
			}
			if err != nil {
				return nil, err
			}
			h.Rank = t.similarity
			if hits = append(hits, h); len(hits) == f.Limit {
				return hits, nil
			}
		}
	}
	return hits, nil
}

// match finds the text among those of a message.
func (t nearText) match(texts []foundText, _ []string) (text, snippet string, matches bool) {
	for _, s := range texts {
		if s.id == t.id {
			return s.text, query.Snippet(s.text, query.Words(s.text), nil), true
		}
	}
	return "", "", false
}

type placeOf struct {
	address
	role int64
}

// placesOf returns the places in scope that use a text, the latest first.
func (f *finding) placesOf(ctx context.Context, text int64) (all []placeOf, err error) {
	scope, roles, args := f.visible()
	err = derivedfile.Each(ctx, f.conn, func(scan func(...any) error) error {
		var p placeOf
		err := scan(&p.run, &p.seq, &p.head, &p.role)
		all = append(all, p)
		return err
	}, `SELECT u.run, u.seq, u.head, u.role FROM usages u `+scope+` WHERE u.text = ?`+roles+` ORDER BY u.run DESC, u.seq DESC, u.head`,
		append([]any{text}, args...)...)
	return all, err
}
