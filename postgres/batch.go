package postgres

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/judge"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

const (
	// mostGathered is the largest number of commits in a row.
	mostGathered = 256
	// mostContended is the number of batches that lock the store before they are judged, after another process wrote.
	mostContended = 16
)

// pending is a commit that waits to be written.
type pending struct {
	ctx    context.Context
	commit *structure.Commit
	o      backend.Options
	full   bool
	// prepared is the commit without what is known. begun is set when its ids were checked.
	prepared judge.Preparation
	begun    bool
	reads    []judge.Key // what judging may read
	whole    bool        // reads has whole trees, as after a collection
	claimed  atomic.Bool // by the batch, or by a caller who no longer waits
	receipt  backend.Receipt
	err      error
	cache    *cache // without an error, the cache in which its batch was judged
	head     head   // and the state after the batch
	done     chan struct{}
}

// Apply implements backend.Engine. Commits that arrive during a batch share the next.
func (e *Engine) Apply(ctx context.Context, c *structure.Commit, o backend.Options) (backend.Receipt, error) {
	if ctx.Err() != nil {
		return backend.Receipt{}, context.Cause(ctx)
	}
	if o.Durability == backend.DefaultDurability {
		o.Durability = e.o.Durability
	}
	p := &pending{ctx: ctx, commit: c, o: o, full: o.Durability == backend.Full, done: make(chan struct{})}
	if o.Once != nil {
		if err := o.Once.Valid(); err != nil {
			return backend.Receipt{}, err
		}
	}
	if err := p.begin(); err != nil { // without the lock, because it hashes what the commit brings
		return backend.Receipt{}, err
	}
	p.keys(e.cache.Load().last().epoch != 0)
	select {
	case <-e.ctx.Done():
		return backend.Receipt{}, errClosed
	case <-ctx.Done():
		return backend.Receipt{}, context.Cause(ctx)
	case e.queue <- p:
	}
	select {
	case <-p.done:
		return p.receipt, p.err
	case <-ctx.Done():
		if p.claimed.CompareAndSwap(false, true) {
			return backend.Receipt{}, context.Cause(ctx)
		}
	case <-e.stopped:
	}
	// The batch has it now and uses the memory of the commit.
	select {
	case <-p.done:
	case <-e.stopped:
		select {
		case <-p.done:
		default:
			return backend.Receipt{}, errClosed
		}
	}
	return p.receipt, p.err
}

// begin checks the ids of the commit's content, once.
func (p *pending) begin() error {
	if p.begun {
		return nil
	}
	p.begun = true
	return p.prepared.Begin(p.commit)
}

// keys returns what judging the commit may read.
func (p *pending) keys(whole bool) []judge.Key {
	if p.reads == nil || p.whole != whole {
		p.reads, p.whole = judge.Keys(judge.Case{Commit: p.commit, WholeTrees: whole}, p.o), whole
	}
	return p.reads
}

// lead writes the commits that wait, in batches, until the engine is closed.
func (e *Engine) lead() {
	defer func() {
		e.answering.ended.Wait()
		close(e.stopped)
	}()
	var batch []*pending
	for {
		select {
		case <-e.ctx.Done():
			return
		case p := <-e.queue:
			batch = append(batch, p)
		}
		for len(batch) > 0 {
			batch = e.commitBatch(batch)
		}
	}
}

// gather adds the waiting commits. Callers who were just answered may have another commit, so they
// run first.
func (e *Engine) gather(batch []*pending) []*pending {
	for range 2 {
		runtime.Gosched()
		batch = e.addQueued(batch)
	}
	return batch
}

// addQueued adds the commits in the queue.
func (e *Engine) addQueued(batch []*pending) []*pending {
	for len(batch) < mostGathered {
		select {
		case p := <-e.queue:
			batch = append(batch, p)
		default:
			return batch
		}
	}
	return batch
}

// claim removes the commits whose callers no longer wait, and claims the others.
func claim(batch []*pending) []*pending {
	return slices.DeleteFunc(batch, func(p *pending) bool { return !p.claimed.CompareAndSwap(false, true) })
}

// commitBatch commits a batch and what waits, and returns what did not fit into the row.
func (e *Engine) commitBatch(batch []*pending) (rest []*pending) {
	e.writing.Lock()
	defer e.writing.Unlock()
	mine := claim(e.gather(batch))
	if len(mine) == 0 {
		return nil
	}
	mine, rest = e.commitAsRow(mine, true)
	e.answer(mine)
	for _, p := range rest {
		p.claimed.Store(false)
	}
	return rest
}

func durabilityOf(full bool) backend.Durability {
	if full {
		return backend.Full
	}
	return backend.Normal
}

// newID returns the id of a row.
func newID() uint64 {
	var b [8]byte
	for {
		_, _ = rand.Read(b[:]) // never fails
		if id := binary.LittleEndian.Uint64(b[:]); id != 0 {
			return id
		}
	}
}

// commitAsRow writes commits as one row of the log. If more is set, commits that come until the store is locked join them.
// It returns the commits with an outcome, and those that did not fit.
func (e *Engine) commitAsRow(batch []*pending, more bool) (done, rest []*pending) {
	var err error
	for range mostRetries {
		done, rest, err = e.tryRow(batch, more)
		batch = append(done[:len(done):len(done)], rest...)
		if !errors.Is(err, errBehind) && !errors.Is(err, errDiverged) {
			break
		}
	}
	switch {
	case err == nil:
		return done, rest
	case errors.Is(err, errBehind), errors.Is(err, errDiverged):
		err = fmt.Errorf("%d attempts: %w: %w", mostRetries, err, backend.ErrConflict)
	case len(done) > 1 && !errors.Is(err, backend.ErrUncertain) && !isTransient(err): // perhaps because of one of them
		for _, p := range done { // one commit always fits
			e.commitAsRow([]*pending{p}, false)
		}
		return done, rest
	}
	fail(done, err)
	return done, rest
}

// errFull is returned for a commit that does not fit into the row.
var errFull = errors.New("the row is full")

// tryRow is one attempt of commitAsRow. It is errBehind or errDiverged if the state in which the commits were judged was not
// the latest. An error is the outcome of all commits in done.
func (e *Engine) tryRow(batch []*pending, more bool) (done, rest []*pending, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*writeTime)
	defer cancel()
	table, t, err := e.beginRow(ctx, batch)
	defer func() { t.rollback() }()
	if err == nil && t != nil && more { // they came while another process held the store
		batch, err = e.addLate(ctx, batch)
	}
	if err != nil {
		e.judging.state.Cache.Forget()
		return batch, nil, asBehind(err)
	}
	before := table.state
	r := &row{first: before.next(), id: newID(), counts: before.counts, forgets: before.forgets}
	e.judging.row = r
	done, rest, full, refused, err := e.judgeBatch(batch)
	if t != nil && r.count >= manyCommits { // other processes wait for the store: see answering
		full = false
	}
	if err == nil {
		err = e.writeJudged(ctx, table, t, full, refused)
	}
	if err != nil {
		e.judging.state.Cache.Forget()
		return done, rest, asBehind(err)
	}
	e.advance(table, before, r, full)
	for _, p := range done {
		p.cache, p.head = table.cache, e.head
	}
	return done, rest, nil
}

// beginRow returns the state in which a batch is judged, with what judging reads. While no other process writes, it is the
// state after the last batch. Writing the row then checks that the state is still the latest, and the transaction is nil.
// Otherwise the transaction locks the store.
func (e *Engine) beginRow(ctx context.Context, batch []*pending) (*table, *writeTx, error) {
	warm := e.warm
	e.warm = nil // until the row is written
	if warm == nil || e.contended > 0 || warm.cache != e.cache.Load() {
		return e.lock(ctx, batch)
	}
	warm.ctx = ctx
	e.judging.begin(warm)
	warm.added.absent = make(map[string]struct{})
	return warm, nil, e.judging.prefetch(ctx, batch)
}

// addLate adds the commits that came since a batch was gathered, and reads what judging them reads.
func (e *Engine) addLate(ctx context.Context, batch []*pending) ([]*pending, error) {
	n := len(batch)
	batch = e.addQueued(batch)
	late := claim(batch[n:])
	batch = batch[:n+len(late)]
	if len(late) == 0 {
		return batch, nil
	}
	return batch, e.judging.prefetch(ctx, late)
}

// judgeBatch judges commits and adds them to the row. It returns those with an outcome, and those that do not fit. full is
// set if a commit in the row asks for full durability, and refused if a commit was refused. An error is one of the server or
// the store.
func (e *Engine) judgeBatch(batch []*pending) (done, rest []*pending, full, refused bool, err error) {
	r := e.judging.row
	for i, p := range batch {
		before := r.count
		p.receipt, p.err = e.judge(p)
		switch {
		case errors.Is(p.err, errFull):
			p.err = nil
			return batch[:i], batch[i:], full, refused, nil
		case isServerError(p.err):
			return batch, nil, full, refused, p.err
		}
		refused = refused || p.err != nil
		full = full || p.full && r.count > before
	}
	return batch, nil, full, refused, nil
}

// writeJudged writes the row. Without a transaction it is errBehind if the commits were judged in a state that is not the
// latest, or if a commit may have been refused because of an entry that was assumed to be absent.
func (e *Engine) writeJudged(ctx context.Context, table *table, t *writeTx, full, refused bool) error {
	r, before := e.judging.row, table.state.head
	switch {
	case t == nil && len(table.added.absent) > 0 && (refused || r.count == 0):
		return errBehind
	case r.count == 0 && t == nil:
		return withRetry(ctx, func(ctx context.Context) error { return e.log.requireHead(ctx, before) })
	case r.count == 0:
		return nil
	}
	if err := e.judging.seal(); err != nil {
		return err
	}
	if t == nil {
		return e.log.write(ctx, before, r, durabilityOf(full))
	}
	return e.writeRow(ctx, t, before, r, durabilityOf(full))
}

// asBehind returns errBehind for a state that can no longer be read.
func asBehind(err error) error {
	if errors.Is(err, errGone) {
		return fmt.Errorf("%w: %w", errBehind, err)
	}
	return err
}

// isServerError reports whether an error in judging is of the server or the store, and not of the commit.
func isServerError(err error) bool {
	return err != nil && (errors.Is(err, errBehind) || errors.Is(err, errGone) || errors.Is(err, backend.ErrCorrupt) || isTransient(err) || sqlState(err) != "")
}

// judge judges a commit and adds it to the row.
func (e *Engine) judge(p *pending) (receipt backend.Receipt, err error) {
	j := e.judging
	if p.ctx.Err() != nil {
		return receipt, context.Cause(p.ctx)
	}
	if err := p.begin(); err != nil {
		return receipt, err
	}
	if o := p.o.Once; o != nil {
		number, err := applied(j.table, o, func(c backend.Cursor) error { return e.log.checkCursor(j.table.ctx, c) })
		if err != nil {
			return receipt, err
		}
		if number > 0 {
			at, err := e.cursorOf(j, number)
			return backend.Receipt{Cursor: at, Repeated: true}, err
		}
	}
	j.state.Begin(j.next(), false)
	if err := judge.Expect(&j.state, p.o); err != nil {
		return receipt, err
	}
	if _, err := p.prepared.DropKnown(j); err != nil {
		return receipt, err
	}
	receipt.Known, receipt.KnownChunks = p.prepared.Known, p.prepared.KnownChunks
	c := p.prepared.Commit
	if len(c.Records) == 0 { // all of it is known content
		if receipt.Cursor = j.table.state.Cursor; j.row.count > 0 {
			receipt.Cursor = j.row.last()
		}
		return receipt, nil
	}
	payload, offsets, err := j.encoder.Encode(&c)
	if err != nil {
		return receipt, fmt.Errorf("%w: %w", backend.ErrInvalid, err)
	}
	if size := len(j.row.data) + len(payload) + 64; size > maxRow && j.row.count > 0 {
		return receipt, errFull
	}
	s := embedded.Sequenced{Number: j.next(), ID: j.row.id, Payload: bytes.Clone(payload), Once: p.o.Once}
	if err := j.add(p.ctx, &c, s, offsets, false); err != nil {
		return receipt, err
	}
	j.row.once = j.row.once || s.Once != nil
	j.row.data = appendCommit(j.row.data, s)
	j.row.count++
	receipt.Cursor = backend.Cursor{Number: s.Number, ID: s.ID}
	return receipt, nil
}

// cursorOf returns the cursor of a commit, which may be in the row that is not written yet.
func (e *Engine) cursorOf(j *judging, number uint64) (backend.Cursor, error) {
	if number >= j.row.first {
		return backend.Cursor{Number: number, ID: j.row.id}, nil
	}
	return e.log.cursorOf(j.table.ctx, number)
}

// advance moves the engine and the table to the state after a row that is in the log. The row may have no commits.
func (e *Engine) advance(t *table, before state, r *row, full bool) {
	after := before
	if r.count > 0 {
		after = before.after(r)
	}
	changed := t.added.contexts()
	t.settle(after, r.entries)
	t.fetch = func(ctx context.Context, n need) (found, error) { return e.log.at(ctx, t.state.head, n) }
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

// mostWarm and mostWarmBytes limit the entries that are kept from one batch to the next.
const (
	mostWarm      = 1 << 16
	mostWarmBytes = 16 << 20
)

// lock begins a write transaction, which locks the store, and reads what judging the commits reads.
func (e *Engine) lock(ctx context.Context, batch []*pending) (*table, *writeTx, error) {
	var t *writeTx
	c := e.cache.Load()
	table := newTable(ctx, c, e.log.identity, c.last().state(), nil) // what it has is at least that old
	j := e.judging
	table.fetch = func(ctx context.Context, n need) (f found, err error) {
		if t != nil {
			if f, err = t.read(ctx, n); isTransient(err) || mayHaveWritten(err) { // nothing was written yet
				err = fmt.Errorf("%w: %w", errBehind, err)
			}
			return f, err
		}
		known := c.last()
		var st state
		var there bool
		err = withRetry(ctx, func(ctx context.Context) (err error) {
			t, st, f, there, err = e.log.lock(ctx, known, n)
			return err
		})
		if errors.Is(err, errUnfilled) { // a program of an earlier version wrote
			if err := e.fill(ctx); err != nil {
				return f, err
			}
			return f, errDiverged
		}
		if errors.Is(err, errDiverged) || err == nil && !there {
			if err := e.forget(ctx, c); err != nil {
				return f, err
			}
			return f, errDiverged
		}
		if err != nil {
			return f, err
		}
		switch {
		case c != e.judgedIn:
			j.state.Cache.Forget()
			e.judgedIn = c
		case st.head != e.head:
			j.state.Cache.ForgetCurrent()
		}
		e.contended = max(e.contended-1, 0)
		if st.head != e.head && e.head != (head{}) { // another process wrote
			e.contended = mostContended
		}
		table.state = st
		j.counts = keys.CountersOf(st.counts)
		c.advance(st)
		return f, nil
	}
	j.begin(table)
	folded := table.state.folded
	err := j.prefetch(ctx, batch)
	if err == nil && t == nil { // nothing had to be read
		_, err = table.fetch(ctx, need{})
	}
	if err == nil && table.state.folded != folded { // what was unfolded before was left out
		err = j.prefetch(ctx, batch)
	}
	if err != nil {
		t.rollback()
		return nil, nil, err
	}
	return table, t, nil
}

// writeRow writes a row in a transaction and ends the transaction.
func (e *Engine) writeRow(ctx context.Context, t *writeTx, h head, r *row, d backend.Durability) error {
	limited, cancel := context.WithTimeout(ctx, writeTime)
	err := t.append(limited, r, d)
	cancel()
	if err == nil || !mayHaveWritten(err) && !isTransient(err) {
		return explain(err)
	}
	return e.log.resolve(ctx, h, r, d, err)
}

// fail makes an error the outcome of commits.
func fail(batch []*pending, err error) {
	for _, p := range batch {
		p.receipt, p.err = backend.Receipt{}, err
	}
}

// Upload implements backend.Engine.
func (e *Engine) Upload(ctx context.Context, chunks []*structure.Chunk) (int, error) {
	return backend.UploadInCommit(ctx, e, chunks)
}

// Outcome implements backend.Engine. An outcome is durable if commits are by default: the one who made the commit may still
// wait for that.
func (e *Engine) Outcome(ctx context.Context, o backend.Once) (r backend.Receipt, err error) {
	if err := o.Valid(); err != nil {
		return r, err
	}
	n := keysNeed(keys.Of(keys.TableRequests, o.Session[:]), keys.Of(keys.TableRequests))
	err = e.withTable(ctx, n, func(t *table) error {
		r, err = e.outcome(ctx, t, o)
		return err
	})
	return r, err
}

// outcome looks up a request in a state.
func (e *Engine) outcome(ctx context.Context, t *table, o backend.Once) (backend.Receipt, error) {
	number, err := applied(t, &o, func(c backend.Cursor) error { return e.log.checkCursor(ctx, c) })
	if err == nil && number == 0 {
		err = fmt.Errorf("request %d of session %x: %w", o.Sequence, o.Session, backend.ErrNotFound)
	}
	if err != nil {
		return backend.Receipt{}, err
	}
	at, err := e.log.cursorOf(ctx, number)
	if err == nil && e.o.Durability == backend.Full {
		if err = e.flush(ctx, t.cache, t.state.head); errors.Is(err, errDiverged) {
			err = errGone // so that it is looked up again
		}
	}
	return backend.Receipt{Cursor: at, Repeated: true}, err
}

// Forget implements backend.Engine.
func (e *Engine) Forget(ctx context.Context, id [16]byte) error {
	e.writing.Lock()
	defer e.writing.Unlock()
	if e.closed.Load() {
		return errClosed
	}
	e.warm = nil
	return withRetry(ctx, func(ctx context.Context) error { // to forget twice is harmless
		for range mostRetries {
			if err := e.forgetOnce(ctx, id); !errors.Is(err, errDiverged) && !errors.Is(err, errBehind) {
				return err
			}
		}
		return errDiverged
	})
}

func (e *Engine) forgetOnce(ctx context.Context, id [16]byte) error {
	t, held, err := e.lock(ctx, nil)
	if err != nil {
		return err
	}
	defer held.rollback()
	gone, err := forgotten(t, func(key string, _ session) bool { return key[1:] == string(id[:]) }, 0)
	if err != nil || len(gone) == 0 {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	var b pgx.Batch
	queueDurability(&b, backend.Normal)
	var former [][]byte
	for _, change := range gone { // a version of this state may be there
		b.Queue(`INSERT INTO lineage_entry (store, epoch, key, age, value) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (store, epoch, key, age) DO UPDATE SET value = excluded.value`,
			e.log.store, int64(t.state.epoch), change.Key, -int64(t.state.Number), change.Value)
		former = append(former, change.Key)
	}
	b.Queue(`INSERT INTO lineage_former (store, epoch, n, part, keys) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (store, epoch, n, part) DO NOTHING`,
		e.log.store, int64(t.state.epoch), int64(t.state.Number), -1-int32(t.state.forgets%(1<<30)), former)
	b.Queue(`UPDATE lineage_head SET forgets = forgets + 1 WHERE store = $1 AND epoch = $2`, e.log.store, int64(t.state.epoch)) // whoever judged before has another horizon
	return held.commit(limited, &b)
}
