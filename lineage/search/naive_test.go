package search

import (
	"context"
	"database/sql"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/query"
	"github.com/lineage-store/lineage/internal/searched"
)

// Ranked is an address with its rank.
type Ranked struct {
	Run, Seq int64
	Head     int
	Rank     float64
}

// candidates collects occurrences in any order, all in memory.
type candidates map[address]*candidate

func (c candidates) Reset() { clear(c) }

func (c candidates) Add(o searched.Occurrence) {
	at := address{o.Run, o.Seq, o.Head}
	found := c[at]
	if found == nil {
		found = &candidate{address: at, role: o.Role}
		c[at] = found
	}
	n := 0
	for n < len(found.texts) && found.texts[n] != o.Text {
		n++
	}
	if n == len(found.texts) {
		found.texts = append(found.texts, o.Text)
		found.words += o.Words
	}
	found.places = append(found.places, leafAt{o.Leaf, int32(n)*query.PieceWords + o.At})
}

// BothWays returns the matches of a query in the file of an index, with all candidates in memory, and as searches find them.
func BothWays(ctx context.Context, x *Index, q Query) (naive, found []Ranked, err error) {
	parsed, err := query.Parse(q.Text)
	if err != nil || parsed == nil {
		return nil, nil, err
	}
	if err := x.Update(ctx); err != nil {
		return nil, nil, err
	}
	err = x.index.(*fileIndex).file.With(func(db *sql.DB) error {
		conn, err := db.Conn(ctx)
		if err != nil {
			return err
		}
		defer conn.Close()
		if _, err := conn.ExecContext(ctx, `BEGIN`); err != nil {
			return err
		}
		defer conn.ExecContext(ctx, `ROLLBACK`)
		view := &fileView{conn}
		f := &activeSearch{Query: q, scope: q.scope(), matcher: query.NewMatcher(parsed), view: view}
		if err := view.enter(ctx, &f.scope); err != nil {
			return err
		}
		all := make(candidates)
		size, err := view.Find(ctx, &f.scope, f.matcher.Leaves(), f.matcher.Condition(), all)
		if err != nil {
			return err
		}
		var matches query.Matches
		defer matches.Close()
		for _, c := range all {
			if f.matcher.MatchPlaces(func(place func(leaf int, at int32)) {
				for _, l := range c.places {
					place(int(l.leaf), l.at)
				}
			}) {
				matches.Add("", c.appendID(nil), c.run<<32+c.seq, int(c.words), f.matcher.Found)
			}
		}
		if naive, err = ranked(&matches, size); err != nil {
			return err
		}
		defer f.matches.Close()
		if size, err = view.Find(ctx, &f.scope, f.matcher.Leaves(), f.matcher.Condition(), f); err != nil {
			return err
		}
		f.settle()
		found, err = ranked(&f.matches, size)
		return err
	})
	return naive, found, err
}

func ranked(matches *query.Matches, size int) (all []Ranked, err error) {
	if err := matches.Rank(map[string]int{"": size}); err != nil {
		return nil, err
	}
	for _, m := range matches.Best(matches.Len()) {
		a := addressOf(m.ID)
		all = append(all, Ranked{a.Run, a.Seq, a.Head, m.Rank})
	}
	return all, nil
}

// The memory of a search does not grow with the messages that have its words.
func TestCandidatesShareMemory(t *testing.T) {
	parsed, err := query.Parse("ant bee")
	require.NoError(t, err)
	f := &activeSearch{matcher: query.NewMatcher(parsed)}
	f.Reset()
	const messages = 50_000
	for seq := range int64(messages) {
		for leaf := range int32(2) {
			f.Add(searched.Occurrence{Address: searched.Address{Run: 1, Seq: 1 + seq}, Text: seq, Words: 2, Leaf: leaf, At: leaf})
		}
	}
	f.settle()
	defer f.matches.Close()
	require.Equal(t, messages, f.matches.Len())
	require.LessOrEqual(t, cap(f.current.texts)+cap(f.current.places)+cap(f.id), 64)
}
