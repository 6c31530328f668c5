package postgres

import (
	"context"
	"errors"

	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// attempt is one attempt to write commits as a row of the log.
type attempt struct {
	engine *Engine
	batch  []*pending // the commits; when they were judged, those with an outcome
	rest   []*pending // those that do not fit into the row

	reader  *stateReader // of the state in which they are judged
	tx      *writeTx     // locks the store; nil if writing the row checks that this state is still the latest
	row     *logRow
	full    bool // a commit in the row asks for full durability
	refused bool // a commit was refused
}

// tryRow is one attempt of commitAsRow. It is errBehind or errDiverged if the state in which the commits were judged was not
// the latest. An error is the outcome of all commits in done.
func (e *Engine) tryRow(batch []*pending, more bool) (done, rest []*pending, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*writeTime)
	defer cancel()
	a := attempt{engine: e, batch: batch}
	if err = a.run(ctx, more); err != nil {
		e.judging.state.Cache.Forget()
		err = asBehind(err)
	}
	return a.batch, a.rest, err
}

func (a *attempt) run(ctx context.Context, more bool) error {
	if err := a.begin(ctx); err != nil {
		return err
	}
	defer a.tx.rollback()
	if a.tx != nil && more { // they came while another process held the store
		if err := a.addLate(ctx); err != nil {
			return err
		}
	}
	if err := a.judgeAll(); err != nil {
		return err
	}
	if err := a.write(ctx); err != nil {
		return err
	}
	a.engine.advance(a.reader, a.row, a.full)
	for _, p := range a.batch {
		p.cache, p.head = a.reader.cache, a.engine.head
	}
	return nil
}

// begin gets the state in which the commits are judged, with what judging reads. While no other process writes, it is the
// state after the last batch. Otherwise a transaction locks the store.
func (a *attempt) begin(ctx context.Context) (err error) {
	warm := a.engine.warm
	a.engine.warm = nil // until the row is written
	if warm == nil || a.engine.contended > 0 || warm.cache != a.engine.cache.Load() {
		a.reader, a.tx, err = a.engine.lock(ctx, a.batch)
		return err
	}
	a.reader = warm
	warm.ctx = ctx
	a.engine.judging.begin(warm)
	warm.added.absent = make(map[string]struct{})
	return a.engine.judging.prefetch(ctx, a.batch)
}

// addLate adds the commits that came since the batch was gathered, and reads what judging them reads.
func (a *attempt) addLate(ctx context.Context) error {
	n := len(a.batch)
	a.batch = a.engine.queue.addTo(a.batch)
	late := claim(a.batch[n:])
	a.batch = a.batch[:n+len(late)]
	if len(late) == 0 {
		return nil
	}
	return a.engine.judging.prefetch(ctx, late)
}

// judgeAll judges the commits and adds them to the row, until one does not fit. An error is one of the server or the store.
func (a *attempt) judgeAll() error {
	before := a.reader.state
	a.row = &logRow{first: before.next(), id: newID(), counts: before.counts, forgets: before.forgets}
	a.engine.judging.row = a.row
	for i, p := range a.batch {
		count := a.row.count
		p.receipt, p.err = a.engine.judge(p)
		if errors.Is(p.err, errFull) {
			p.err = nil
			a.batch, a.rest = a.batch[:i], a.batch[i:]
			break
		}
		if isServerError(p.err) {
			return p.err
		}
		a.refused = a.refused || p.err != nil
		a.full = a.full || p.full && a.row.count > count
	}
	if a.tx != nil && a.row.count >= manyCommits { // other processes wait for the store: see answering
		a.full = false
	}
	return nil
}

// write writes the row, if it has commits. Without a transaction it is errBehind if the commits were judged in a state that is
// not the latest, or if a commit may have been refused because of an entry that was assumed to be absent.
func (a *attempt) write(ctx context.Context) error {
	before, empty := a.reader.state.head, a.row.count == 0
	switch {
	case a.tx == nil && len(a.reader.added.absent) > 0 && (a.refused || empty):
		return errBehind
	case a.tx == nil && empty:
		return withRetry(ctx, func(ctx context.Context) error { return a.engine.log.requireHead(ctx, before) })
	case empty:
		return nil
	}
	if err := a.engine.judging.seal(); err != nil {
		return err
	}
	if a.tx == nil {
		return a.engine.log.write(ctx, before, a.row, durabilityOf(a.full))
	}
	return a.tx.write(ctx, before, a.row, durabilityOf(a.full))
}

func durabilityOf(full bool) backend.Durability {
	if full {
		return backend.Full
	}
	return backend.Normal
}

// mostWarm and mostWarmBytes limit the entries that are kept from one batch to the next.
const (
	mostWarm      = 1 << 16
	mostWarmBytes = 16 << 20
)

// advance moves the engine, and the reader of the state before a row, to the state after it. The row is in the log, or has no
// commits.
func (e *Engine) advance(t *stateReader, r *logRow, full bool) {
	after := t.state
	if r.count > 0 {
		after = after.after(r)
	}
	changed := t.added.contexts()
	t.settle(after, r.entries)
	t.fetch = func(ctx context.Context, n need) (fetchResult, error) { return e.log.at(ctx, t.state.head, n) }
	if len(t.fetched.recent.values) < mostWarm && t.settled < mostWarmBytes {
		e.warm = t
	}
	e.head = after.head
	t.cache.advance(after)
	t.cache.remember(changed, t)
	if r.count == 0 {
		return
	}
	if full {
		t.cache.durable.advance(r.last())
	}
	e.changed.announce()
	e.pruneLater(r)
}

// isServerError reports whether an error in judging is of the server or the store, and not of the commit.
func isServerError(err error) bool {
	return err != nil && (errors.Is(err, errBehind) || errors.Is(err, errGone) || errors.Is(err, backend.ErrCorrupt) || isTransient(err) || sqlState(err) != "")
}

// remember caches contexts as they are in a state, for the commits that continue from them.
func (c *cache) remember(ids []structure.ContextID, t *stateReader) {
	known := read.GetterFunc(func(key []byte) ([]byte, bool, error) {
		v, _ := t.look(key)
		return v, v != nil, nil
	})
	for _, id := range ids {
		v, hasContext := t.look(keys.Of(keys.TableContext, id[:]))
		if _, hasTip := t.look(keys.Of(keys.TableTip, id[:])); !hasContext || !hasTip {
			continue
		}
		if v == nil {
			c.contexts.Set(id, backend.Context{})
			continue
		}
		if current, err := read.ContextOf(known, id, v); err == nil {
			c.contexts.Set(id, current)
		}
	}
}
