package search

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/lineage-store/lineage/internal/derivedfile"
	"github.com/lineage-store/lineage/internal/query"
	"github.com/lineage-store/lineage/internal/vector"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
)

// Search updates the index, and its embeddings if it searches for a vector, and returns the matches, best first. The
// rank of words depends only on what is in scope. A damaged index is rebuilt.
func (x *Index) Search(ctx context.Context, q Query) (hits []Hit, err error) {
	if q.Limit < 0 {
		return nil, fmt.Errorf("limit %d: %w", q.Limit, lineage.ErrInvalid)
	}
	q.Limit = cmp.Or(q.Limit, chat.DefaultSearchLimit)
	f := &finding{store: x.store, Query: q}
	update := x.Update
	if q.Vector != nil {
		if q.Text != "" || !vector.HasDirection(q.Vector) {
			return nil, fmt.Errorf("search for a vector: %w: finite numbers that are not all 0, and no text", lineage.ErrInvalid)
		}
		update = x.Embed
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
	err = x.file.Repaired(ctx, func() error { // for damage that the update does not find
		for {
			if err := update(ctx); err != nil {
				return err
			}
			if hits, err = x.find(ctx, f); !errors.Is(err, errUnsettled) {
				return err
			}
		}
	})
	return hits, err
}

// errUnsettled is returned if another process is updating the index, so that it does not match any state of the
// store.
var errUnsettled = errors.New("the search index is being updated")

// find runs a search on one state of the index.
func (x *Index) find(ctx context.Context, f *finding) (hits []Hit, err error) {
	err = x.file.With(func(db *sql.DB) error {
		if f.conn, err = db.Conn(ctx); err != nil {
			return err
		}
		defer f.conn.Close()
		if _, err := f.conn.ExecContext(ctx, `BEGIN`); err != nil {
			return err
		}
		defer f.conn.ExecContext(context.WithoutCancel(ctx), `ROLLBACK`)
		var settled bool
		if err := f.conn.QueryRowContext(ctx, `SELECT number = seen_number AND id = seen_id FROM meta`).Scan(&settled); err != nil {
			return err
		}
		if !settled {
			return errUnsettled
		}
		if err := f.enter(ctx); err != nil {
			return err
		}
		if f.Vector != nil {
			hits, err = f.nearest(ctx)
			return err
		}
		if err := f.collect(ctx); err != nil {
			return err
		}
		hits, err = f.hits(ctx)
		return err
	})
	return hits, err
}

// selectAmong determines the threads that Among yields.
func (f *finding) selectAmong(ctx context.Context) error {
	if f.Among == nil {
		return nil
	}
	for _, statement := range []string{`CREATE TEMP TABLE IF NOT EXISTS among (id BLOB PRIMARY KEY) WITHOUT ROWID`, `DELETE FROM temp.among`} {
		if _, err := f.conn.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	for t, err := range f.Among {
		if err != nil {
			return err
		}
		id := t.ID()
		if _, err := f.conn.ExecContext(ctx, `INSERT OR IGNORE INTO temp.among VALUES (?1)`, id[:]); err != nil {
			return err
		}
	}
	return nil
}

// enter determines how far the threads in scope see each run.
func (f *finding) enter(ctx context.Context) error {
	if !f.scoped() {
		return nil
	}
	if _, err := f.conn.ExecContext(ctx, `CREATE TEMP TABLE IF NOT EXISTS scope (run INTEGER PRIMARY KEY, upto INTEGER NOT NULL)`); err != nil {
		return err
	}
	if err := f.selectAmong(ctx); err != nil {
		return err
	}
	of := f.inScope()
	_, err := f.conn.ExecContext(ctx, `DELETE FROM temp.scope`)
	if err == nil {
		_, err = f.conn.ExecContext(ctx, `INSERT INTO temp.scope
			WITH RECURSIVE seen (run, upto) AS (
				SELECT p.run, p.seq FROM threads h JOIN tips p ON p.thread = h.number WHERE `+of+`
				UNION SELECT r.number, ?3 FROM threads h JOIN runs r ON r.thread = h.number WHERE `+of+` AND h.keeps
				UNION SELECT r.parent, r.after FROM seen JOIN runs r ON r.number = seen.run WHERE r.parent > 0)
			SELECT run, MAX(upto) FROM seen GROUP BY run`, f.Thread[:], f.User, int64(derivedfile.Forever))
	}
	return err
}

// collect finds the occurrences of the query's words.
func (f *finding) collect(ctx context.Context) error {
	f.found = make(map[address]*candidate)
	scope, roles, wanted := f.visible()
	for i, leaf := range f.matcher.Leaves() {
		term, args := `v.term = ?`, []any{leaf.Term}
		if leaf.Prefix {
			term, args = `v.term >= ? AND v.term < ?`, []any{leaf.Term, leaf.Term + "\U0010ffff"}
		}
		// Reading a column costs as much as finding its row, so columns are combined. Numbers in a search index are
		// below 1<<31.
		statement := `SELECT u.run << 32 | u.seq, u.text << 32 | u.role, u.head << 32 | u.words, v.offset
			FROM places v CROSS JOIN usages u ON u.text = v.doc ` + scope + ` WHERE ` + term + roles
		err := derivedfile.Each(ctx, f.conn, func(scan func(...any) error) error {
			var step, text, head, at int64
			if err := scan(&step, &text, &head, &at); err != nil {
				return fmt.Errorf("%w: %w", derivedfile.ErrUseless, err)
			}
			if at < 0 || at >= maxWords {
				return fmt.Errorf("word %d of a text: %w", at, derivedfile.ErrUseless)
			}
			const low = 1<<32 - 1
			p := address{run: step >> 32, seq: step & low, head: int(head >> 32)}
			f.add(p, text&low, head&low, text>>32, int32(i), int32(at))
			return nil
		}, statement, append(args, wanted...)...)
		if err != nil {
			return err
		}
	}
	return nil
}

// add records an occurrence of a word.
func (f *finding) add(p address, role, words, text int64, leaf, at int32) {
	if f.steps {
		p.head = 0
	}
	c := f.found[p]
	if c == nil {
		c = &candidate{role: role}
		f.found[p] = c
	}
	n := len(c.texts) - 1
	for n >= 0 && c.texts[n] != text {
		n--
	}
	if n < 0 {
		if n = len(c.texts); n == query.MaxPieces {
			return
		}
		c.texts = append(c.texts, text)
		c.words += words
	}
	c.places = append(c.places, leafAt{leaf, int32(n)*query.PieceWords + at})
}

// hits returns the best matches, with their content in the store.
func (f *finding) hits(ctx context.Context) ([]Hit, error) {
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
	size, err := f.size(ctx)
	if err != nil {
		return nil, err
	}
	matches.Rank(map[string]int{"": size})
	var hits []Hit
	for done, ask := 0, f.Limit; len(hits) < f.Limit && done < len(f.order); ask *= 2 {
		best := matches.Best(ask)
		for _, m := range best[done:] {
			p := f.order[binary.BigEndian.Uint64(matches.ID(&m))]
			h, err := f.show(ctx, p, f.found[p].role, f.match)
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

// size returns the number of steps in scope.
func (f *finding) size(ctx context.Context) (n int, err error) {
	statement := `SELECT spans FROM meta`
	if f.scoped() {
		statement = `SELECT IFNULL(SUM(MIN(s.upto, r.last)), 0) FROM temp.scope s JOIN runs r ON r.number = s.run`
	}
	err = f.conn.QueryRowContext(ctx, statement).Scan(&n)
	return n, err
}
