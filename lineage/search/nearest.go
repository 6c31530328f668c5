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
	"github.com/lineage-store/lineage/internal/searched"
	"github.com/lineage-store/lineage/internal/vector"
	"github.com/lineage-store/lineage/lineage/transcript"
)

// nearText is a text with a vector, and its similarity to the vector searched for.
type nearText struct {
	id         searched.TextID
	number     int64
	similarity float64
}

// nearest returns the hits whose texts are nearest to the vector. It compares the vectors of all texts
// in scope.
func (f *activeSearch) nearest(ctx context.Context, view *fileView) (hits []Hit, err error) {
	scope, roles, args := visible(&f.scope)
	var near []nearText
	var v []float32
	err = derivedfile.Each(ctx, view.conn, func(scan func(...any) error) error {
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
			t.id = searched.TextID(id)
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
		used, err := view.usesOf(ctx, &f.scope, t.number)
		if err != nil {
			return nil, err
		}
		for _, a := range used {
			p := address{a.Run, a.Seq, a.Head}
			if shown[p] {
				continue
			}
			shown[p] = true
			locations, err := view.Locations(ctx, &f.scope, []searched.Address{a})
			if err != nil {
				return nil, err
			}
			h, err := f.show(ctx, p, &locations[0], t.match)
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
			return s.text, cmp.Or(query.Beginning(s.passages), query.Beginning([]transcript.Passage{{Text: s.text}})), true
		}
	}
	return "", "", false
}

// usesOf returns the addresses in scope that use a text, the latest first.
func (v *fileView) usesOf(ctx context.Context, s *searched.Scope, text int64) (all []searched.Address, err error) {
	scope, roles, args := visible(s)
	err = derivedfile.Each(ctx, v.conn, func(scan func(...any) error) error {
		var a searched.Address
		err := scan(&a.Run, &a.Seq, &a.Head, &a.Role)
		all = append(all, a)
		return err
	}, `SELECT u.run, u.seq, u.head, u.role FROM usages u `+scope+` WHERE u.text = ?`+roles+` ORDER BY u.run DESC, u.seq DESC, u.head`,
		append([]any{text}, args...)...)
	return all, err
}
