package searchindex

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/lineage-store/lineage/internal/query"
	"github.com/lineage-store/lineage/internal/searched"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/structure"
)

// A search takes three round trips: the numbers of its terms and the messages in scope, the texts with the rarest of the terms that a match
// must have, and the words of the messages that have it. In a small scope it takes two, and without a rare term in a large one four.

// seenSQL determines how far the threads in scope see each run. $2 is a thread, $3 a user, $4 a list of threads; null is
// no restriction.
const (
	inScope = ` ($2::bytea IS NULL OR h.id = $2) AND ($3::bytea IS NULL OR h.username = $3) AND ($4::bytea[] IS NULL OR h.id = ANY($4)) `
	seenSQL = `WITH RECURSIVE seen AS (
  SELECT p.run AS run, p.seq AS upto FROM lineage_search_thread h JOIN lineage_search_tip p ON p.store = $1 AND p.thread = h.id WHERE h.store = $1 AND` + inScope + `
  UNION SELECT r.number, 9223372036854775807 FROM lineage_search_thread h JOIN lineage_search_run r ON r.store = $1 AND r.thread = h.id WHERE h.store = $1 AND h.keeps AND` + inScope + `
  UNION SELECT r.parent, r.after FROM seen JOIN lineage_search_run r ON r.store = $1 AND r.number = seen.run WHERE r.parent IS NOT NULL),
s AS MATERIALIZED (SELECT run, max(upto) AS upto FROM seen GROUP BY run) `
	sizeSQL = seenSQL + `SELECT coalesce(sum(least(s.upto, r.last)), 0)::bigint FROM s JOIN lineage_search_run r ON r.store = $1 AND r.number = s.run`
)

// Parts of the statement for the words of messages. $5 are the terms, $6 the roles of messages, $7 leaves out summaries,
// and $8 are the texts, one of which a message must have.
const (
	// Up to placed terms have their places found by the server.
	placed     = 4
	placesSQL  = `array_positions(words, $9::integer), array_positions(words, $10::integer), array_positions(words, $11::integer), array_positions(words, $12::integer)`
	columnsSQL = `u.run, u.seq, u.head, u.kind, u.text, cardinality(words), `
	withText   = `FROM lineage_search_text t JOIN lineage_search_usage u ON u.store = $1 AND u.text = t.id `
	driverSQL  = `SELECT DISTINCT d.run, d.seq FROM lineage_search_usage d WHERE d.store = $1 AND d.text = ANY($8::bytea[])`
	ofDriver   = `d JOIN lineage_search_usage u ON u.store = $1 AND u.run = d.run AND u.seq = d.seq JOIN lineage_search_text t ON t.store = $1 AND t.id = u.text `
	inRuns     = `JOIN lineage_search_run s ON s.store = $1 AND s.number = u.run AND u.seq <= s.reached `
	inSeen     = `JOIN s ON s.run = u.run AND u.seq <= s.upto `
	withTerm   = `WHERE t.store = $1 AND words && $5::integer[] `
	ofKinds    = `($6::bytea[] IS NULL OR u.kind = 1 AND u.role = ANY($6)) AND NOT ($7::boolean AND u.kind = 0)`
	// The types of parameters that a statement does not use otherwise.
	typesSQL = ` AND ($2::bytea IS NULL OR true) AND ($3::bytea IS NULL OR true) AND ($4::bytea[] IS NULL OR true) AND ($8::bytea[] IS NULL OR true)`
)

// occurrencesSQL returns the statement that reads the words of messages, and with places set the places of each term instead. The
// rows are in the order of their messages, so that a search has one message in memory. OFFSET 0 keeps the server from another order
// of reading: it would read all usages in their order to find those of some texts, or whole runs for single messages, and it does
// not know how many messages are in scope.
func (f *activeSearch) occurrencesSQL(places bool) string {
	columns := columnsSQL + `words`
	if places {
		columns = columnsSQL + placesSQL
	}
	head, scope := ``, inRuns
	if f.scope.Restricted() {
		head, scope = seenSQL, inSeen
	}
	var from string
	switch {
	case f.driven:
		from = `FROM (SELECT u.run, u.seq FROM (` + driverSQL + ` OFFSET 0) u ` + scope + `OFFSET 0) ` + ofDriver + withTerm + `AND `
	case f.fewTexts:
		from = `FROM (SELECT u.*, words ` + withText + withTerm + `OFFSET 0) u ` + scope + `WHERE `
	default:
		from = withText + scope + withTerm + `AND `
	}
	return head + `SELECT * FROM (SELECT ` + columns + ` ` + from + ofKinds + typesSQL + ` OFFSET 0) o ORDER BY run, seq, head`
}

// Tests change these.
var (
	// MostDriving is the largest number of texts of a driver: see findDriver.
	MostDriving = 5_000
	// FewMessages is the largest number of messages in a scope that are read without looking for a driver.
	FewMessages int64 = 10_000
)

// view is the index as one search sees it: all its statements read the same generation.
type view struct {
	*Index
	at meta // as of the first statement of Find
}

// View implements searched.Index.
func (x *Index) View() searched.View { return &view{Index: x} }

// queueSame reads the row of the index. It is ErrUnsettled if the index cannot be searched, and ErrRebuilt if it has
// another generation than the view.
func (v *view) queueSame(b *pgx.Batch, m *meta) {
	v.queueMeta(b, m)
	then(b, func() error {
		switch {
		case !m.usable():
			return searched.ErrUnsettled
		case m.generation != v.at.generation:
			return searched.ErrRebuilt
		}
		return nil
	})
}

// then calls a function after the result of the last statement was read.
func then(b *pgx.Batch, check func() error) {
	q := b.QueuedQueries[b.Len()-1]
	read := q.Fn
	q.Fn = func(r pgx.BatchResults) error {
		if err := read(r); err != nil {
			return err
		}
		return check()
	}
}

// mended discards the index after an error that says that it is damaged.
func (v *view) mended(ctx context.Context, err error) error {
	if errors.Is(err, searched.ErrDamaged) {
		err = errors.Join(err, v.discard(ctx, v.at.generation))
	}
	return err
}

// activeSearch is a search in progress.
type activeSearch struct {
	*view
	scope    *searched.Scope
	into     searched.Collector
	leavesOf map[int32][]int32 // the leaves of a term
	termsOf  [][]int32         // the terms of a leaf
	all      []int32           // all terms
	driver   [][]byte          // texts, one of which a message must have
	driven   bool
	size     int64 // messages in the scope, if it is restricted
	fewTexts bool  // fewer texts have a term than that
}

// Find implements searched.View.
func (v *view) Find(ctx context.Context, s *searched.Scope, leaves []query.Leaf, condition query.Condition, into searched.Collector) (steps int, err error) {
	into.Reset()
	f := &activeSearch{view: v, scope: s, into: into, leavesOf: make(map[int32][]int32), termsOf: make([][]int32, len(leaves))}
	if err := f.findTerms(ctx, leaves); err != nil {
		return 0, err
	}
	if len(f.all) == 0 {
		return 0, nil
	}
	sets, possible := f.required(leaves, condition)
	if !possible {
		return 0, nil
	}
	if !f.scope.Restricted() || f.size > FewMessages {
		if err := f.findDriver(ctx, sets); err != nil {
			return 0, err
		}
	}
	steps, err = f.findOccurrences(ctx)
	return steps, v.mended(ctx, err)
}

// findTerms finds the terms of the leaves.
func (f *activeSearch) findTerms(ctx context.Context, leaves []query.Leaf) error {
	var exact, low, high [][]byte
	leafOf := make(map[string]int32)
	var prefixes []int32
	for i, l := range leaves {
		if l.Prefix {
			low, high = append(low, []byte(l.Term)), append(high, []byte(l.Term+"\U0010ffff"))
			prefixes = append(prefixes, int32(i))
		} else {
			leafOf[l.Term] = int32(i)
			exact = append(exact, []byte(l.Term))
		}
	}
	found := func(leaf, number int32) {
		if len(f.leavesOf[number]) == 0 {
			f.all = append(f.all, number)
		}
		f.leavesOf[number] = append(f.leavesOf[number], leaf)
		f.termsOf[leaf] = append(f.termsOf[leaf], number)
	}
	return f.server.Read(ctx, func(b *pgx.Batch) {
		f.leavesOf, f.all, f.termsOf = make(map[int32][]int32), nil, make([][]int32, len(leaves))
		f.queueMeta(b, &f.at)
		then(b, func() error {
			if !f.at.usable() || !f.at.Settled() && !f.scope.Unsettled {
				return searched.ErrUnsettled
			}
			return nil
		})
		if f.scope.Restricted() {
			b.Queue(sizeSQL, f.arguments(f.scope)...).QueryRow(func(row pgx.Row) error { return row.Scan(&f.size) })
		}
		if len(exact) > 0 {
			b.Queue(termsSQL, f.store, exact).Query(func(rows pgx.Rows) error {
				var term []byte
				var n int32
				_, err := pgx.ForEachRow(rows, []any{&term, &n}, func() error { found(leafOf[string(term)], n); return nil })
				return err
			})
		}
		if len(low) > 0 {
			b.Queue(prefixesSQL, f.store, low, high, searched.MostExpanded+1).Query(func(rows pgx.Rows) error {
				return scanExpanded(rows, func(i int64, number int32) { found(prefixes[i-1], number) })
			})
		}
	})
}

// prefixesSQL selects the terms with some prefixes, each with the place of its prefix, from 1 on.
const prefixesSQL = `SELECT p.i, t.number FROM unnest($2::bytea[], $3::bytea[]) WITH ORDINALITY AS p (low, high, i)
JOIN lineage_search_term t ON t.store = $1 AND t.term >= p.low AND t.term < p.high LIMIT $4`

// scanExpanded reads the rows of prefixesSQL.
func scanExpanded(rows pgx.Rows, found func(prefix int64, number int32)) error {
	var i int64
	var n int32
	all := 0
	_, err := pgx.ForEachRow(rows, []any{&i, &n}, func() error {
		if all++; all > searched.MostExpanded {
			return fmt.Errorf("%w, at most %d: %w", searched.ErrTooBroad, searched.MostExpanded, lineage.ErrInvalid)
		}
		found(i, n)
		return nil
	})
	return err
}

// required returns sets of leaves. A match has at least one leaf of each set.
func required(c query.Condition, numbers map[query.Leaf]int) [][]int {
	switch {
	case c.IsAny():
		return nil
	case len(c.Parts) == 0:
		return [][]int{{numbers[query.Leaf{Term: c.Term, Prefix: c.Prefix}]}}
	}
	var sets [][]int
	var either []int
	for _, part := range c.Parts {
		inner := required(part, numbers)
		if !c.Or {
			sets = append(sets, inner...)
			continue
		}
		if len(inner) == 0 {
			return nil
		}
		either = append(either, inner[0]...)
	}
	if c.Or {
		return [][]int{either}
	}
	return sets
}

// required returns sets of terms. A match has a term of each set. It reports false if nothing matches.
func (f *activeSearch) required(leaves []query.Leaf, condition query.Condition) (sets [][]int32, possible bool) {
	numbers := make(map[query.Leaf]int, len(leaves))
	for i, l := range leaves {
		numbers[l] = i
	}
	for _, set := range required(condition, numbers) {
		var terms []int32
		for _, leaf := range set {
			terms = append(terms, f.termsOf[leaf]...)
		}
		if len(terms) == 0 {
			return nil, false
		}
		sets = append(sets, terms)
	}
	return sets, true
}

// findDriver finds the texts by which messages are found: those with the rarest of the terms that a match must have, if
// there are few. If not, a search in a scope compares the number of texts that have a term with that of the messages in scope.
func (f *activeSearch) findDriver(ctx context.Context, sets [][]int32) error {
	if !f.scope.Restricted() { // all terms would find all that is read anyway
		sets = slices.DeleteFunc(sets, func(terms []int32) bool { return len(terms) >= len(f.all) })
		if len(sets) == 0 {
			return nil
		}
	}
	var m meta
	err := f.server.Read(ctx, func(b *pgx.Batch) {
		f.driver, f.driven = nil, false
		f.queueSame(b, &m)
		for _, terms := range sets {
			b.Queue(`SELECT id FROM lineage_search_text WHERE store = $1 AND words && $2::integer[] LIMIT $3`, f.store, terms, MostDriving+1).Query(func(rows pgx.Rows) error {
				var id []byte
				var ids [][]byte
				_, err := pgx.ForEachRow(rows, []any{&id}, func() error { ids = append(ids, append([]byte(nil), id...)); return nil })
				if err == nil && len(ids) <= MostDriving && (!f.driven || len(ids) < len(f.driver)) {
					f.driver, f.driven = ids, true
				}
				return err
			})
		}
	})
	if err != nil || f.driven || !f.scope.Restricted() {
		return err
	}
	return f.server.Read(ctx, func(b *pgx.Batch) {
		f.queueSame(b, &m)
		b.Queue(`SELECT $3 > count(*) FROM (SELECT FROM lineage_search_text WHERE store = $1 AND words && $2::integer[] LIMIT $3) t`, f.store, f.all, f.size).
			QueryRow(func(row pgx.Row) error { return row.Scan(&f.fewTexts) })
	})
}

// arguments returns the parameters of the scope.
func (x *Index) arguments(s *searched.Scope) []any {
	var thread, user []byte
	var among [][]byte
	if !s.Thread.IsZero() {
		thread = s.Thread[:]
	}
	if s.User != "" {
		user = []byte(s.User)
	}
	if s.Listed {
		among = make([][]byte, len(s.Among))
		for i := range s.Among {
			among[i] = s.Among[i][:]
		}
	}
	return []any{x.store, thread, user, among}
}

// findOccurrences collects the places of the terms, and returns the number of steps in scope.
func (f *activeSearch) findOccurrences(ctx context.Context) (steps int, err error) {
	s := f.scope
	places := len(f.all) <= placed
	var roles [][]byte
	for _, r := range s.Roles {
		roles = append(roles, []byte(r))
	}
	scope := f.arguments(s)
	args := append(scope[:len(scope):len(scope)], f.all, roles, s.NoSummaries, f.driver)
	var terms [placed]any
	if places {
		for i, n := range f.all {
			terms[i] = n
		}
		args = append(args, terms[:]...)
	}
	var m meta
	err = f.server.Read(ctx, func(b *pgx.Batch) {
		f.into.Reset()
		f.queueSame(b, &m)
		b.Queue(f.occurrencesSQL(places), args...).Query(func(rows pgx.Rows) error {
			if !m.Settled() && !s.Unsettled {
				rows.Close()
				return searched.ErrUnsettled
			}
			return f.read(rows, places)
		})
		if s.Restricted() {
			b.Queue(sizeSQL, scope...).QueryRow(func(row pgx.Row) error { return row.Scan(&steps) })
		}
	})
	if !s.Restricted() {
		steps = int(m.spans)
	}
	return steps, err
}

// read collects the rows of a statement.
func (f *activeSearch) read(rows pgx.Rows, places bool) error {
	defer rows.Close()
	var o searched.Occurrence
	var text []byte
	var head int32
	var words []int32
	var at [placed][]int32
	into := []any{&o.Run, &o.Seq, &head, &o.Role, &text, &o.Words}
	if places {
		into = append(into, &at[0], &at[1], &at[2], &at[3])
	} else {
		into = append(into, &words)
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		if len(text) != 16 {
			return fmt.Errorf("text %x: %w", text, searched.ErrDamaged)
		}
		o.Head = int(head)
		o.Text = 0
		for _, c := range [...]byte{text[0], text[1], text[2], text[3], text[4], text[5], text[6], text[15]} {
			o.Text = o.Text<<8 | int64(c)
		}
		give := func(term int32, word int) {
			for _, leaf := range f.leavesOf[term] {
				o.Leaf, o.At = leaf, int32(word)
				f.into.Add(o)
			}
		}
		if !places {
			for i, n := range words {
				give(n, i)
			}
			continue
		}
		for i, n := range f.all {
			for _, word := range at[i] {
				give(n, int(word)-1)
			}
		}
	}
	return rows.Err()
}

const locationSQL = `SELECT a.n, r.id FROM unnest($2::integer[], $3::bigint[]) AS a (n, run)
JOIN lineage_search_run r ON r.store = $1 AND r.number = a.run`

const viewersSQL = `WITH RECURSIVE behind AS (
  SELECT a.n AS n, a.run AS run, a.seq AS seq FROM unnest($5::integer[], $6::bigint[], $7::bigint[]) AS a (n, run, seq)
  UNION SELECT b.n, r.number, 0 FROM behind b JOIN lineage_search_run r ON r.store = $1 AND r.parent = b.run AND r.after >= b.seq WHERE r.reached > 0),
seen AS (
  SELECT b.n AS n, p.thread AS thread, CASE WHEN p.thread IS NULL THEN p.id END AS id, CASE WHEN p.thread IS NULL THEN p.of END AS of
    FROM behind b JOIN lineage_search_tip p ON p.store = $1 AND p.run = b.run AND p.seq >= b.seq
  UNION SELECT b.n, r.thread, NULL, NULL FROM behind b JOIN lineage_search_run r ON r.store = $1 AND r.number = b.run
    JOIN lineage_search_thread h ON h.store = $1 AND h.id = r.thread AND h.keeps)
SELECT DISTINCT s.n, h.number, h.id, s.id, s.of FROM seen s LEFT JOIN lineage_search_thread h ON h.store = $1 AND h.id = s.thread WHERE` + inScope + `ORDER BY s.n, h.number, s.id`

// Locations implements searched.View.
func (v *view) Locations(ctx context.Context, s *searched.Scope, addresses []searched.Address) ([]searched.Location, error) {
	locations := make([]searched.Location, len(addresses))
	ns, runs, seqs := make([]int32, len(addresses)), make([]int64, len(addresses)), make([]int64, len(addresses))
	for i, a := range addresses {
		ns[i], runs[i], seqs[i] = int32(i), a.Run, a.Seq
	}
	var m meta
	err := v.server.Read(ctx, func(b *pgx.Batch) {
		for i, a := range addresses {
			locations[i] = searched.Location{Kind: structure.UsageKind(a.Role)}
			if !s.Thread.IsZero() {
				locations[i].Threads = []lineage.ThreadID{s.Thread}
			}
		}
		v.queueSame(b, &m)
		b.Queue(locationSQL, v.store, ns, runs).Query(func(rows pgx.Rows) error { return scanRuns(rows, locations) })
		if s.Thread.IsZero() {
			b.Queue(viewersSQL, append(v.arguments(s), ns, runs, seqs)...).Query(func(rows pgx.Rows) error { return scanViewers(rows, locations) })
		}
	})
	for i := 0; i < len(locations) && err == nil; i++ {
		if locations[i].Run.IsZero() {
			err = fmt.Errorf("run %d is missing: %w", addresses[i].Run, searched.ErrDamaged)
		}
	}
	return locations, v.mended(ctx, err)
}

// scanRuns reads the rows of locationSQL.
func scanRuns(rows pgx.Rows, locations []searched.Location) error {
	var n int32
	var id []byte
	_, err := pgx.ForEachRow(rows, []any{&n, &id}, func() error {
		p := &locations[n]
		if context, summary, ok := searched.SummaryOf(id); ok {
			p.Owner, p.Run = context, structure.RunID(summary)
		} else if len(id) == len(p.Run) {
			p.Run = structure.RunID(id)
		} else {
			return fmt.Errorf("run %x: %w", id, searched.ErrDamaged)
		}
		return nil
	})
	return err
}

// scanViewers reads the rows of viewersSQL.
func scanViewers(rows pgx.Rows, locations []searched.Location) error {
	var n int32
	var number *int64
	var thread, id, owner []byte
	contexts := make(map[structure.ContextID]int32)
	_, err := pgx.ForEachRow(rows, []any{&n, &number, &thread, &id, &owner}, func() error {
		p := &locations[n]
		if len(thread) == 16 {
			p.Threads = append(p.Threads, lineage.ThreadID(thread))
			return nil
		}
		context, ok := searched.SummarizedIn(owner)
		if !ok && len(id) == len(context) {
			context, ok = structure.ContextID(id), true
		}
		if was, known := contexts[context]; ok && (!known || was != n) {
			contexts[context] = n
			p.Contexts = append(p.Contexts, context)
		}
		return nil
	})
	return err
}
