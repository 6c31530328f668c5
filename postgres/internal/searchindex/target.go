package searchindex

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/lineage-store/lineage/lineage/derived"
)

// errWorking means that another process is working.
var errWorking = errors.New("another process is updating the search index")

// errCleared means that another process has begun to clear the index, or that the store has another epoch.
var errCleared = errors.New("the search index is of another epoch")

// target implements derived.Target.
type target struct {
	*work
	marked meta // as of the last call of Mark
	adding *indexUpdate
}

// Mark implements derived.Target.
func (t *target) Mark(ctx context.Context) (derived.Mark, error) {
	m, err := t.meta(ctx)
	switch {
	case err != nil:
	case !m.usable():
		err = errCleared
	case m.working(t.owner):
		err = errWorking
	}
	t.marked = m
	return m.Mark, err
}

// Write implements derived.Target.
func (t *target) Write(ctx context.Context, do func(Tx) error) error {
	err := t.server.Write(ctx, do)
	if err != nil && ctx.Err() == nil && t.server.Slow(err) {
		return fmt.Errorf("%w: %w", derived.ErrSlow, err)
	}
	return err
}

// Swap implements derived.Target.
func (t *target) Swap(_ context.Context, tx Tx, was, now derived.Mark) (swapped bool, err error) {
	w := t.adding
	w.stamp = rand.Int64()
	t.begun = true
	var busy *float64 // for how many seconds others wait; nil if nothing is left to add
	if now.At != now.Seen {
		seconds := busyTime.Seconds()
		busy = &seconds
	}
	err = tx(func(b *pgx.Batch) {
		if busy != nil && !w.sorts { // the server sorts more words at once; the last window has it sort those that are left
			b.Queue(`SELECT set_config('gin_pending_list_limit', $1, true)`, strconv.Itoa(max(w.feed.Most(manyWords), fewestWords)))
		}
		b.Queue(`UPDATE lineage_search SET identity = $4, number = $5, id = $6, seen_number = $7, seen_id = $8, version = $9, stamp = $10,
  spans = $11, runs = $12, threads = $13, terms = $14, erased = $15, busy_until = statement_timestamp() + make_interval(secs => $16),
  generation = $18, owner = $19
WHERE store = $1 AND version = $2 AND stamp = $3 AND NOT clearing AND epoch = $17 AND epoch = (SELECT epoch FROM lineage_store WHERE store = $1) RETURNING version`,
			t.store, was.Version, t.marked.stamp, now.Store[:], int64(now.At.Number), int64(now.At.ID), int64(now.Seen.Number), int64(now.Seen.ID), now.Version, w.stamp,
			w.next.spans, w.next.runs, w.next.threads, w.next.terms, w.next.erased, busy, t.marked.epoch,
			w.next.generation, t.owner).
			Query(func(rows pgx.Rows) error { swapped = rows.Next(); rows.Close(); return rows.Err() })
	})
	return swapped, err
}

// manyWords is the size in KiB of the list of words that the server has not sorted into its index, while there is much to
// add. Searches read all of the list. The transaction that exceeds it sorts them; what it has sorted stays, even if it fails.
// fewestWords is the least that the server accepts.
const (
	manyWords   = 64 << 10
	fewestWords = 64
)

// Apply implements derived.Target. Texts and mentions that are too many for one transaction are written in several before the
// last one of the window. Writing them again changes nothing.
func (t *target) Apply(ctx context.Context, w *derived.Window[Tx]) error {
	t.adding = &indexUpdate{index: t.Index, before: t.marked, next: t.marked, feed: w}
	if err := t.adding.prepare(ctx); err != nil {
		return err
	}
	if err := t.applyTexts(ctx); err != nil {
		return err
	}
	if err := t.applyMentions(ctx); err != nil {
		return err
	}
	if err := w.Finish(ctx, t.adding.write); err != nil {
		return err
	}
	t.wrote(t.adding.next, t.adding.added)
	return nil
}

// applyTexts writes texts and terms, but for those of the last transaction.
func (t *target) applyTexts(ctx context.Context) error {
	w := t.adding
	for {
		more, err := w.findTexts(ctx)
		if err != nil {
			return err
		}
		for most := w.most(); len(w.terms) > most; {
			rest, numbers := w.terms[most:], w.numbers[most:]
			w.terms, w.numbers = w.terms[:most], w.numbers[:most]
			if err := t.write(ctx, nil, w.writeTerms); err != nil { // the others have no numbers yet
				return err
			}
			w.terms, w.numbers = rest, numbers
		}
		if !more {
			return nil
		}
		if err := t.write(ctx, w.added, func(b *pgx.Batch) { w.writeTerms(b); w.writeWords(b) }); err != nil {
			return err
		}
	}
}

// applyMentions writes mentions, but for those of the last transaction, and the runs that they are in. Nothing sees these yet.
func (t *target) applyMentions(ctx context.Context) error {
	w := t.adding
	most := w.most()
	if len(w.mentions) <= most {
		return nil
	}
	w.sorts = w.feed.To == w.feed.Head
	err := t.write(ctx, w.added, func(b *pgx.Batch) { w.writeTerms(b); w.writeWords(b); w.writeRuns(b) })
	if err != nil {
		return err
	}
	w.terms, w.numbers, w.ids, w.words, w.repeats = nil, nil, nil, nil, true
	for len(w.mentions) > most {
		rest := w.mentions[most:]
		w.mentions = w.mentions[:most]
		if err := t.write(ctx, w.added, w.writeMentions); err != nil {
			return err
		}
		w.mentions = rest
	}
	return nil
}

// write writes a part of the window. The index then has the added terms.
func (t *target) write(ctx context.Context, added map[string]int32, statements func(*pgx.Batch)) error {
	w := t.adding
	last := w.next
	w.next = t.marked
	w.next.terms, w.next.runs = last.terms, last.runs
	err := w.feed.Write(ctx, func(tx Tx) error { return tx(statements) })
	if err == nil {
		t.wrote(w.next, added)
	}
	w.before, w.next = t.marked, last
	return err
}

// wrote records the state after a transaction.
func (t *target) wrote(next meta, added map[string]int32) {
	next.Version, next.stamp, next.owner = t.marked.Version+1, t.adding.stamp, t.owner
	if len(t.adding.gone) > 0 { // terms of erased texts may be gone
		added = nil
	}
	t.known.learn(&t.marked, &next, added)
	t.marked = next
}
