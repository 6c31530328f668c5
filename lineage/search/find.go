package search

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/lineage-store/lineage/internal/query"
	"github.com/lineage-store/lineage/internal/searched"
	"github.com/lineage-store/lineage/internal/vector"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
)

// Search updates the index, and its embeddings if it searches for a vector, and returns the matches, best first. The
// rank of words depends only on what is in scope. A damaged index is rebuilt.
func (x *Index) Search(ctx context.Context, q Query) ([]Hit, error) {
	if q.Limit < 0 {
		return nil, fmt.Errorf("limit %d: %w", q.Limit, lineage.ErrInvalid)
	}
	q.Limit = cmp.Or(q.Limit, chat.DefaultSearchLimit)
	f := &finding{store: x.store, Query: q, scope: q.scope()}
	if q.Vector != nil {
		if q.Text != "" || !vector.HasDirection(q.Vector) {
			return nil, fmt.Errorf("search for a vector: %w: finite numbers that are not all 0, and no text", lineage.ErrInvalid)
		}
	} else {
		parsed, err := query.Parse(q.Text)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", err, lineage.ErrInvalid)
		}
		if parsed == nil {
			return nil, nil
		}
		f.matcher = query.NewMatcher(parsed)
	}
	if q.Among != nil {
		for t, err := range q.Among {
			if err != nil {
				return nil, err
			}
			f.scope.Among = append(f.scope.Among, t.ID())
		}
	}
	return x.index.search(ctx, f)
}

// search implements index.
func (x *fileIndex) search(ctx context.Context, f *finding) (hits []Hit, err error) {
	update := x.Update
	if f.Vector != nil {
		update = x.Embed
	}
	err = x.file.Repaired(ctx, func() error { // for damage that the update does not find
		for {
			if err := update(ctx); err != nil {
				return err
			}
			if hits, err = x.findIn(ctx, f); !errors.Is(err, searched.ErrUnsettled) {
				return err
			}
		}
	})
	return hits, err
}

// findIn runs a search on one state of the file.
func (x *fileIndex) findIn(ctx context.Context, f *finding) (hits []Hit, err error) {
	err = x.file.With(func(db *sql.DB) error {
		conn, err := db.Conn(ctx)
		if err != nil {
			return err
		}
		defer conn.Close()
		if _, err := conn.ExecContext(ctx, `BEGIN`); err != nil {
			return err
		}
		defer conn.ExecContext(context.WithoutCancel(ctx), `ROLLBACK`)
		var settled bool
		if err := conn.QueryRowContext(ctx, `SELECT number = seen_number AND id = seen_id FROM meta`).Scan(&settled); err != nil {
			return err
		}
		if !settled {
			return searched.ErrUnsettled
		}
		view := &fileView{conn}
		if err := view.enter(ctx, &f.scope); err != nil {
			return err
		}
		f.view = view
		if f.Vector != nil {
			hits, err = f.nearest(ctx, view)
			return err
		}
		hits, err = f.find(ctx)
		return err
	})
	return hits, err
}

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
		places, err := f.places(ctx, &matches, best[done:])
		if err != nil {
			return nil, err
		}
		for i, m := range best[done:] {
			h, err := f.show(ctx, f.order[binary.BigEndian.Uint64(matches.ID(&m))], &places[i], f.match)
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

// places describes matches.
func (f *finding) places(ctx context.Context, all *query.Matches, some []query.Match) ([]searched.Place, error) {
	of := make([]searched.Address, len(some))
	for i := range some {
		p := f.order[binary.BigEndian.Uint64(all.ID(&some[i]))]
		of[i] = searched.Address{Run: p.run, Seq: p.seq, Head: p.head, Role: f.found[p].role}
	}
	return f.view.Places(ctx, &f.scope, of)
}
