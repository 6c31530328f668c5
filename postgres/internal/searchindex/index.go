// Package searchindex keeps the search index of a store in tables of its server, for all processes. Any process may bring
// it up to date: the position is replaced by compare-and-set, and while one process does much, the others wait for it.
//
//	lineage_search        the position, counters, and the epoch of the store that the index is of
//	lineage_search_text   a text, by its id: the number of the term at each word. Erased texts have no words
//	lineage_search_term   the number of a term
//	lineage_search_usage  a text in a message: run, step, first usage of the message, kind and role
//	lineage_search_run, lineage_search_tip, lineage_search_thread
//	                      which steps the threads and contexts see, as in the index in a file
//
// The terms are those of package query, as in the index in a file, so that a search finds the same with the same ranks.
//
// An index of another epoch or history, and a damaged one, is cleared and made again. It is not searched meanwhile. One
// process owns the clearing: it marks the row of the index, from when on nobody adds, and each step locks the row and does
// nothing if the owner is another one. When an owner is not heard of for a while, another process takes the clearing over.
// Numbers of runs, threads and terms are valid in one generation of the index. A search is of one generation.
package searchindex

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lineage-store/lineage/internal/searched"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/derived"
)

// format is the version of the content of the tables. An index with a lower one is made again.
const format = 3

// Server executes statements.
type Server interface {
	// Read executes statements that read in one snapshot of the server, in one round trip. It may do so more than once.
	Read(ctx context.Context, statements func(*pgx.Batch)) error
	// Write calls a function in a transaction. It may call it more than once.
	Write(ctx context.Context, do func(Tx) error) error
	// Denied reports whether an error says that the role, or the server, may not write.
	Denied(err error) bool
	// Damaged reports whether an error says that rows contradict each other.
	Damaged(err error) bool
}

// Tx executes statements in a transaction, in one round trip.
type Tx func(statements func(*pgx.Batch)) error

// Index is the index of a store. It is safe for concurrent use.
type Index struct {
	server Server
	store  []byte
	known  terms
}

var _ searched.Index = (*Index)(nil)

// New returns the index of the store with a key.
func New(server Server, store []byte) *Index { return &Index{server: server, store: store} }

// meta is the row of an index.
type meta struct {
	derived.Mark
	exists, clearing, busy bool
	format                 int
	epoch, current         int64 // of the index, and of the store
	stamp                  int64 // random for each version
	generation             int64 // random for each time that numbers get another meaning
	owner                  int64 // who works on it while it is busy, or did last
	spans                  int64 // the number of steps
	runs, threads, terms   int64 // the last numbers that were given
	erased                 bool  // some content is erased
}

// working reports whether another owner than w works on the index.
func (m *meta) working(w *work) bool { return m.busy && m.owner != w.owner }

// usable reports whether the index is of the present epoch of the store.
func (m *meta) usable() bool {
	return m.exists && !m.clearing && m.format == format && m.epoch == m.current
}

const metaSQL = `SELECT s.epoch, m.store IS NOT NULL, coalesce(m.format, 0), coalesce(m.epoch, 0), coalesce(m.clearing, false), coalesce(m.busy_until > statement_timestamp(), false),
  coalesce(m.identity, ''), coalesce(m.number, 0), coalesce(m.id, 0), coalesce(m.seen_number, 0), coalesce(m.seen_id, 0), coalesce(m.version, 0), coalesce(m.stamp, 0),
  coalesce(m.generation, 0), coalesce(m.owner, 0), coalesce(m.spans, 0), coalesce(m.runs, 0), coalesce(m.threads, 0), coalesce(m.terms, 0), coalesce(m.erased, false)
FROM lineage_store s LEFT JOIN lineage_search m ON m.store = s.store WHERE s.store = $1`

// queueMeta reads the row of the index.
func (x *Index) queueMeta(b *pgx.Batch, m *meta) {
	b.Queue(metaSQL, x.store).QueryRow(func(row pgx.Row) error {
		var identity []byte
		var at, id, seen, seenID int64
		*m = meta{}
		err := row.Scan(&m.current, &m.exists, &m.format, &m.epoch, &m.clearing, &m.busy, &identity, &at, &id, &seen, &seenID, &m.Version, &m.stamp,
			&m.generation, &m.owner, &m.spans, &m.runs, &m.threads, &m.terms, &m.erased)
		if err != nil {
			return err
		}
		copy(m.Store[:], identity)
		m.At = backend.Cursor{Number: uint64(at), ID: uint64(id)}
		m.Seen = backend.Cursor{Number: uint64(seen), ID: uint64(seenID)}
		if m.format > format {
			return fmt.Errorf("the search index has format %d, this program knows up to %d: %w", m.format, format, backend.ErrNewerFormat)
		}
		return nil
	})
}

func (x *Index) meta(ctx context.Context) (m meta, err error) {
	err = x.server.Read(ctx, func(b *pgx.Batch) { x.queueMeta(b, &m) })
	return m, err
}

// Mark implements searched.Index.
func (x *Index) Mark(ctx context.Context) (derived.Mark, error) {
	m, err := x.meta(ctx)
	if err == nil && !m.usable() {
		err = searched.ErrUnsettled
	}
	return m.Mark, err
}

// busyTime is for how long a process that has written or removed a part of the index is expected to do more.
const busyTime = 15 * time.Second

// releaseTime is for how long a process that was cancelled tries to tell the others.
const releaseTime = 5 * time.Second

// manyWords is the size in KiB of the list of words that the server has not sorted into its index, while there is much to
// add. Searches read all of the list.
const manyWords = "65536"

// waitPause is the pause between looks at an index that another process is making.
const waitPause = 100 * time.Millisecond

// mostRepeated limits how often an update begins again because the index does not fit the store.
const mostRepeated = 100

// Update implements searched.Index.
func (x *Index) Update(ctx context.Context, store *lineage.Store, progress func(done, total uint64)) error {
	err := x.update(ctx, store, progress)
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("search index: %w", context.Cause(ctx))
	}
	if x.server.Denied(err) {
		return fmt.Errorf("%w: %w", searched.ErrReadOnly, err)
	}
	if err != nil {
		return fmt.Errorf("search index: %w", err)
	}
	return nil
}

func (x *Index) update(ctx context.Context, store *lineage.Store, progress func(done, total uint64)) (err error) {
	head, err := store.View().Head(ctx)
	if err != nil {
		return err
	}
	w := x.work()
	defer func() {
		if err != nil {
			w.release(ctx)
		}
	}()
	repaired := false
	for cleared := 0; cleared < mostRepeated; cleared++ {
		m, err := w.waited(ctx, head, progress)
		if err != nil {
			return err
		}
		if m.usable() {
			if m.working(w) { // with what came later
				return nil
			}
			t := &target{work: w}
			f := derived.Follower[Tx]{Store: store, Target: t, Commits: true, Limit: searched.WindowLimit, Progress: progress}
			_, err := f.Run(ctx)
			damaged := errors.Is(err, searched.ErrDamaged) || x.server.Damaged(err)
			switch {
			case errors.Is(err, errWorking):
				cleared--
				continue
			case errors.Is(err, errCleared):
				continue
			case damaged && repaired:
				return fmt.Errorf("it was made again, and still: %w", err)
			case !damaged && !useless(err):
				return err
			}
			repaired = repaired || damaged
			if m = t.marked; !m.usable() {
				continue
			}
		}
		if err := w.clear(ctx, m); err != nil {
			return err
		}
	}
	return fmt.Errorf("other processes kept clearing it: %w", searched.ErrUnsettled)
}

// errWorking means that another process is working.
var errWorking = errors.New("another process is updating the search index")

// useless reports whether an error says that the index is not one of the store.
func useless(err error) bool {
	return errors.Is(err, lineage.ErrDiverged) || errors.Is(err, derived.ErrOtherStore)
}

// errCleared means that another process has begun to clear the index, or that the store has another epoch.
var errCleared = errors.New("the search index is of another epoch")

// Collected clears an index from before the last collection. The text that the collection removed goes with it.
func (x *Index) Collected(ctx context.Context) (err error) {
	w := x.work()
	defer func() {
		if err != nil {
			w.release(ctx)
		}
	}()
	for range mostRepeated {
		m, err := w.waited(ctx, backend.Cursor{}, nil)
		if err != nil || !m.exists || m.usable() {
			return err
		}
		if err := w.clear(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// target implements derived.Target.
type target struct {
	*work
	marked meta // as of the last call of Mark
	adding *window
}

// Mark implements derived.Target.
func (t *target) Mark(ctx context.Context) (derived.Mark, error) {
	m, err := t.meta(ctx)
	switch {
	case err != nil:
	case !m.usable():
		err = errCleared
	case m.working(t.work):
		err = errWorking
	}
	t.marked = m
	return m.Mark, err
}

// Write implements derived.Target.
func (t *target) Write(ctx context.Context, do func(Tx) error) error {
	return t.server.Write(ctx, do)
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
			b.Queue(`SELECT set_config('gin_pending_list_limit', $1, true)`, manyWords)
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

// MostWritten is the largest number of words, terms or mentions that a transaction writes, but for the words of one text. The
// time of a transaction is limited, and nothing limits the size of a commit. Tests make it smaller.
var MostWritten = 1 << 17

// Apply implements derived.Target. What is much is written by transactions of its own, before the last one of the window. It
// is the same when it is written again.
func (t *target) Apply(ctx context.Context, w *derived.Window[Tx]) error {
	t.adding = &window{index: t.Index, before: t.marked, next: t.marked, w: w}
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
		for len(w.terms) > MostWritten {
			rest, numbers := w.terms[MostWritten:], w.numbers[MostWritten:]
			w.terms, w.numbers = w.terms[:MostWritten], w.numbers[:MostWritten]
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
	if len(w.mentions) <= MostWritten {
		return nil
	}
	w.sorts = w.w.To == w.w.Head
	err := t.write(ctx, w.added, func(b *pgx.Batch) { w.writeTerms(b); w.writeWords(b); w.writeRuns(b) })
	if err != nil {
		return err
	}
	w.terms, w.numbers, w.ids, w.words, w.repeats = nil, nil, nil, nil, true
	for len(w.mentions) > MostWritten {
		rest := w.mentions[MostWritten:]
		w.mentions = w.mentions[:MostWritten]
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
	err := w.w.Write(ctx, func(tx Tx) error { return tx(statements) })
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
