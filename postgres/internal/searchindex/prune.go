package searchindex

import (
	"context"
	"errors"
	"math/rand/v2"

	"github.com/jackc/pgx/v5"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/form"
	"github.com/lineage-store/lineage/internal/searched"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Collection is a collection that was decided.
type Collection struct {
	// Epoch is the epoch that it began.
	Epoch int64
	// View reads the store in that epoch.
	View backend.View
	// Last returns the last step that lives of a run, and false if the run is dead.
	Last func(structure.RunID) (last uint64, lives bool)
}

// errNotPruned is returned for an index that is cleared, because it cannot be pruned or that would cost more.
var errNotPruned = errors.New("the search index cannot be pruned")

// PruneStep is the number of rows that are read at once while an index is pruned. The usages of ten times as many steps are deleted
// in a transaction. Tests make it smaller.
var PruneStep = 5000

// pruning removes from an index what a collection removed from the store. Meanwhile the index is marked as being cleared, and
// its process owns the clearing. So nobody adds to it or searches it, and when this process dies another one clears it.
type pruning struct {
	*work
	collection Collection
	state      backend.Snapshot
	summaries  map[string][][]byte // texts of summaries, by the key of their runs
	moved      map[int64]bool
}

// prunable reports whether an index of an earlier epoch can be pruned. An index that is not settled has parts of later commits.
func (m *meta) prunable() bool {
	return m.exists && !m.clearing && m.format == format && m.Settled() && m.At.Number > 0
}

// prune prunes an index that was as in m. It is errNotPruned if the index must be cleared.
func (w *work) prune(ctx context.Context, m meta, c Collection) error {
	if owned, err := w.own(ctx, m); err != nil || !owned {
		return err
	}
	state, err := c.View.Snapshot(ctx)
	if err != nil {
		return err
	}
	defer state.Close()
	head, err := state.Head(ctx)
	if err != nil {
		return err
	}
	stats, err := state.Stats(ctx)
	if err != nil {
		return err
	}
	if uint64(m.spans) < stats.Spans/2 { // making it again costs less
		return errNotPruned
	}
	p := &pruning{work: w, collection: c, state: state, summaries: make(map[string][][]byte), moved: make(map[int64]bool)}
	for _, step := range []func() error{
		func() error { return p.follow(ctx, m.At, head) },
		func() error { return p.readSummaries(ctx) },
		func() error { return p.pruneRuns(ctx) },
		func() error { return p.pruneTexts(ctx) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	// The commits up to head are applied again, because what they removed may be missing.
	_, err = w.write(ctx, nil, `UPDATE lineage_search SET clearing = false, epoch = $3, seen_number = $4, seen_id = $5, version = version + 1, generation = $6, busy_until = NULL,
  spans = (SELECT coalesce(sum(last), 0) FROM lineage_search_run WHERE store = $1 AND octet_length(id) = 16)
WHERE store = $1 AND clearing AND owner = $2 AND $3 = (SELECT epoch FROM lineage_store WHERE store = $1) RETURNING version`,
		w.owner, c.Epoch, int64(head.Number), int64(head.ID), rand.Int64())
	return err
}

// errTaken ends pruning because another process has taken the index over.
var errTaken = errors.New("another process clears the search index")

// step executes statements in a transaction, if this process still owns the clearing.
func (p *pruning) step(ctx context.Context, do func(Tx) error) error {
	return p.server.Write(ctx, func(tx Tx) error {
		owned := false
		err := tx(func(b *pgx.Batch) {
			b.Queue(`UPDATE lineage_search SET busy_until = statement_timestamp() + make_interval(secs => $3) WHERE store = $1 AND clearing AND owner = $2 RETURNING version`,
				p.store, p.owner, busyTime.Seconds()).Query(func(rows pgx.Rows) error { owned = rows.Next(); rows.Close(); return rows.Err() })
		})
		if err == nil && !owned {
			err = errTaken
		}
		if err != nil {
			return err
		}
		return do(tx)
	})
}

// follow removes the words of what was erased after a commit. It is errNotPruned if a run of the index was collected and is in
// use again: the index has the steps of the former one.
func (p *pruning) follow(ctx context.Context, after, head backend.Cursor) error {
	var erased, runs [][]byte
	flush := func() error {
		again := false
		err := p.step(ctx, func(tx Tx) error {
			return tx(func(b *pgx.Batch) {
				b.Queue(`UPDATE lineage_search_text SET words = NULL WHERE store = $1 AND id = ANY($2::bytea[])`, p.store, erased)
				b.Queue(`SELECT EXISTS (SELECT FROM lineage_search_run WHERE store = $1 AND id = ANY($2::bytea[]))`, p.store, runs).
					QueryRow(func(row pgx.Row) error { return row.Scan(&again) })
			})
		})
		erased, runs = erased[:0], runs[:0]
		if err == nil && again {
			err = errNotPruned
		}
		return err
	}
	for c, err := range p.collection.View.Feed(ctx, after) {
		if err != nil {
			return err
		}
		if c.Number > head.Number {
			break
		}
		for _, r := range c.Records {
			switch r := r.(type) {
			case *structure.Run:
				runs = append(runs, r.ID[:])
			case *structure.Deletion:
				if r.Subject == structure.KindBlock {
					erased = appendTexts(erased, r.Content)
				}
			}
		}
		if len(erased)+len(runs) >= PruneStep {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// appendTexts appends the ids of all readings of content.
func appendTexts(texts [][]byte, id content.ID) [][]byte {
	for _, r := range searched.Readings {
		t := searched.TextOf(id, r)
		texts = append(texts, t[:])
	}
	return texts
}

// readSummaries finds the summaries that the store has. Their runs may have had other texts.
func (p *pruning) readSummaries(ctx context.Context) error {
	for s, err := range p.state.Summaries(ctx, structure.ContextID{}) {
		if err != nil {
			return err
		}
		key, text := string(searched.SummaryKey(s.Context, s.ID)), searched.TextOf(s.Content, form.Plain)
		p.summaries[key] = append(p.summaries[key], text[:])
	}
	return nil
}

// indexedRun is a run as the index has it.
type indexedRun struct {
	number, parent, last int64
	visible              bool
	id                   []byte
}

// deadSteps are the steps of a run from one step on, up to another.
type deadSteps struct{ run, from, upTo int64 }

// verdicts say what is left of some runs.
type verdicts struct {
	steps []deadSteps
	dead  []int64 // runs of which nothing is left
	// cut are runs of which a beginning is left, up to the steps in lasts.
	cut, lasts []int64
	// living are runs of summaries, and texts are those that they have now.
	living []int64
	texts  [][]byte
}

// pruneRuns removes dead runs and the ends of runs that were cut, with their usages and tips.
func (p *pruning) pruneRuns(ctx context.Context) error {
	for after := int64(0); ; {
		page, err := p.runsAfter(ctx, after)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			break
		}
		after = page[len(page)-1].number
		var v verdicts
		for i := range page {
			p.judge(&v, &page[i])
		}
		if err := p.deleteSteps(ctx, v.steps); err != nil {
			return err
		}
		if err := p.step(ctx, func(tx Tx) error { return tx(func(b *pgx.Batch) { p.writeVerdicts(b, &v) }) }); err != nil {
			return err
		}
	}
	return p.step(ctx, func(tx Tx) error { return (&indexUpdate{index: p.Index}).reach(tx, p.moved) })
}

// runsAfter reads the next runs in the order of their numbers.
func (p *pruning) runsAfter(ctx context.Context, number int64) (page []indexedRun, err error) {
	err = p.server.Read(ctx, func(b *pgx.Batch) {
		page = nil
		b.Queue(`SELECT number, coalesce(parent, 0), last, reached > 0, id FROM lineage_search_run WHERE store = $1 AND number > $2 ORDER BY number LIMIT $3`, p.store, number, PruneStep).
			Query(func(rows pgx.Rows) error {
				var r indexedRun
				_, err := pgx.ForEachRow(rows, []any{&r.number, &r.parent, &r.last, &r.visible, &r.id}, func() error { page = append(page, r); return nil })
				return err
			})
	})
	return page, err
}

// mostSteps is the number of steps whose usages are deleted in a transaction.
func mostSteps() int64 { return int64(10 * PruneStep) }

// judge adds the verdict on a run.
func (p *pruning) judge(v *verdicts, r *indexedRun) {
	last, lives := int64(0), false
	if len(r.id) == len(structure.RunID{}) {
		var at uint64
		at, lives = p.collection.Last(structure.RunID(r.id))
		last = int64(at)
	} else if texts := p.summaries[string(r.id)]; len(texts) > 0 {
		for _, text := range texts {
			v.living, v.texts = append(v.living, r.number), append(v.texts, text)
		}
		return
	}
	switch {
	case !lives:
		v.dead, last = append(v.dead, r.number), 0
		if r.parent > 0 && r.visible {
			p.moved[r.parent] = true
		}
	case last < r.last:
		v.cut, v.lasts = append(v.cut, r.number), append(v.lasts, last)
		p.moved[r.number] = true
	default:
		return
	}
	for from := last + 1; from <= r.last; from += mostSteps() {
		v.steps = append(v.steps, deadSteps{r.number, from, min(r.last, from+mostSteps()-1)})
	}
}

// writeVerdicts removes other texts of summaries, tips of dead steps, and dead runs. Their usages were removed before.
func (p *pruning) writeVerdicts(b *pgx.Batch, v *verdicts) {
	b.Queue(`DELETE FROM lineage_search_usage u WHERE u.store = $1 AND u.run = ANY($2::bigint[])
AND NOT EXISTS (SELECT FROM unnest($2::bigint[], $3::bytea[]) AS l (run, text) WHERE l.run = u.run AND l.text = u.text)`, p.store, v.living, v.texts)
	b.Queue(`DELETE FROM lineage_search_tip WHERE store = $1 AND run = ANY($2::bigint[])`, p.store, v.dead)
	b.Queue(`DELETE FROM lineage_search_tip t USING unnest($2::bigint[], $3::bigint[]) AS c (run, last) WHERE t.store = $1 AND t.run = c.run AND t.seq > c.last`, p.store, v.cut, v.lasts)
	b.Queue(`DELETE FROM lineage_search_run WHERE store = $1 AND number = ANY($2::bigint[])`, p.store, v.dead)
	b.Queue(`UPDATE lineage_search_run r SET last = c.last FROM unnest($2::bigint[], $3::bigint[]) AS c (number, last) WHERE r.store = $1 AND r.number = c.number`, p.store, v.cut, v.lasts)
}

// deleteSteps deletes the usages of dead steps.
func (p *pruning) deleteSteps(ctx context.Context, gone []deadSteps) error {
	most := mostSteps()
	for len(gone) > 0 {
		var runs, froms, upTos []int64
		for steps := int64(0); len(gone) > 0 && (steps == 0 || steps+gone[0].upTo-gone[0].from < most); gone = gone[1:] {
			g := gone[0]
			runs, froms, upTos = append(runs, g.run), append(froms, g.from), append(upTos, g.upTo)
			steps += g.upTo - g.from + 1
		}
		err := p.step(ctx, func(tx Tx) error {
			return tx(func(b *pgx.Batch) {
				b.Queue(`DELETE FROM lineage_search_usage u USING unnest($2::bigint[], $3::bigint[], $4::bigint[]) AS d (run, first, last)
WHERE u.store = $1 AND u.run = d.run AND u.seq BETWEEN d.first AND d.last`, p.store, runs, froms, upTos)
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// pruneTexts removes texts that nothing uses, and then terms that no text has. Rows that mark content as erased stay.
func (p *pruning) pruneTexts(ctx context.Context) error {
	var used termSet
	err := p.eachPage(ctx, func(b *pgx.Batch, after, upTo []byte) {
		b.Queue(`DELETE FROM lineage_search_text t WHERE t.store = $1 AND t.id > $2 AND t.id <= $3 AND get_byte(t.id, 15) <> $4
AND NOT EXISTS (SELECT FROM lineage_search_usage u WHERE u.store = $1 AND u.text = t.id)`, p.store, after, upTo, int(erasedMark))
		b.Queue(`SELECT DISTINCT unnest(words) FROM lineage_search_text WHERE store = $1 AND id > $2 AND id <= $3`, p.store, after, upTo).Query(func(rows pgx.Rows) error {
			var n int32
			_, err := pgx.ForEachRow(rows, []any{&n}, func() error { used.add(n); return nil })
			return err
		})
	})
	if err != nil {
		return err
	}
	return p.pruneTerms(ctx, &used)
}

// termSet is a set of numbers of terms, with a bit for each number up to the last: they are given one after the other.
type termSet struct{ bits []uint64 }

func (s *termSet) add(n int32) {
	at := int(uint32(n) / 64)
	if at >= len(s.bits) {
		s.bits = append(s.bits, make([]uint64, at+1-len(s.bits))...)
	}
	s.bits[at] |= 1 << (uint32(n) % 64)
}

func (s *termSet) has(n int32) bool {
	at := int(uint32(n) / 64)
	return at < len(s.bits) && s.bits[at]&(1<<(uint32(n)%64)) != 0
}

// pruneTerms removes terms that are not used.
func (p *pruning) pruneTerms(ctx context.Context, used *termSet) error {
	for after := []byte{}; ; {
		var last []byte
		var unused [][]byte
		err := p.server.Read(ctx, func(b *pgx.Batch) {
			last, unused = nil, nil
			b.Queue(`SELECT term, number FROM lineage_search_term WHERE store = $1 AND term > $2 ORDER BY term LIMIT $3`, p.store, after, PruneStep).Query(func(rows pgx.Rows) error {
				var n int32
				_, err := pgx.ForEachRow(rows, []any{&last, &n}, func() error {
					if !used.has(n) {
						unused = append(unused, last)
					}
					return nil
				})
				return err
			})
		})
		if err != nil || last == nil {
			return err
		}
		after = last
		if len(unused) == 0 {
			continue
		}
		err = p.step(ctx, func(tx Tx) error {
			return tx(func(b *pgx.Batch) {
				b.Queue(`DELETE FROM lineage_search_term WHERE store = $1 AND term = ANY($2::bytea[])`, p.store, unused)
			})
		})
		if err != nil {
			return err
		}
	}
}

// eachPage executes statements for one range of ids of texts after the other. They may be executed again for a range.
func (p *pruning) eachPage(ctx context.Context, do func(b *pgx.Batch, after, upTo []byte)) error {
	for after := []byte{}; ; {
		var upTo []byte
		err := p.server.Read(ctx, func(b *pgx.Batch) {
			upTo = nil
			b.Queue(`SELECT last FROM (SELECT id AS last FROM lineage_search_text WHERE store = $1 AND id > $2 ORDER BY id LIMIT $3) page ORDER BY last DESC LIMIT 1`, p.store, after, PruneStep).
				Query(func(rows pgx.Rows) error {
					_, err := pgx.ForEachRow(rows, []any{&upTo}, func() error { return nil })
					return err
				})
		})
		if err != nil || upTo == nil {
			return err
		}
		if err := p.step(ctx, func(tx Tx) error { return tx(func(b *pgx.Batch) { do(b, after, upTo) }) }); err != nil {
			return err
		}
		after = upTo
	}
}
