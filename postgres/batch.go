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
	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/internal/judge"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

const (
	// mostGathered is the largest number of commits in a row.
	mostGathered = 256
	// mostContended is the number of batches that lock the store first after another process wrote.
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
	reads    []judge.Key // what judging may read, after a collection if whole is set
	whole    bool
	taken    atomic.Bool // by the batch, or by a caller who no longer waits
	receipt  backend.Receipt
	err      error
	cache    *cache // and head: the state that its batch made, and the cache of that, without an error
	head     head
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
		if p.taken.CompareAndSwap(false, true) {
			return backend.Receipt{}, context.Cause(ctx)
		}
	case <-e.led:
	}
	// The batch has it now and uses the memory of the commit.
	select {
	case <-p.done:
	case <-e.led:
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
		close(e.led)
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
		batch = e.waiting(batch)
	}
	return batch
}

// waiting adds the commits in the queue.
func (e *Engine) waiting(batch []*pending) []*pending {
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

// take removes the commits whose callers no longer wait, and takes the others.
func take(batch []*pending) []*pending {
	return slices.DeleteFunc(batch, func(p *pending) bool { return !p.taken.CompareAndSwap(false, true) })
}

// commitBatch commits a batch and what waits, and returns what did not fit into the row.
func (e *Engine) commitBatch(batch []*pending) (rest []*pending) {
	e.writing.Lock()
	defer e.writing.Unlock()
	mine := take(e.gather(batch))
	if len(mine) == 0 {
		return nil
	}
	mine, rest = e.together(mine, true)
	e.answer(mine)
	for _, p := range rest {
		p.taken.Store(false)
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

// together applies commits as one row. If more is set, those that come until the store is locked join them. It returns the
// commits with an outcome, and those that did not fit.
func (e *Engine) together(batch []*pending, more bool) (done, rest []*pending) {
	var err error
	for range mostRetries {
		done, rest, err = e.attempt(batch, more)
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
	case len(done) > 1 && !errors.Is(err, backend.ErrUncertain) && !lost(err): // perhaps because of one of them
		for _, p := range done { // one commit always fits
			e.together([]*pending{p}, false)
		}
		return done, rest
	}
	fail(done, err)
	return done, rest
}

// errFull is returned for a commit that does not fit into the row that is being made.
var errFull = errors.New("the row is full")

// attempt is together for one attempt. It is errBehind or errDiverged if the state in which the commits were judged was
// not the latest. After any error, it is that of all commits.
func (e *Engine) attempt(batch []*pending, more bool) (done, rest []*pending, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*writeTime)
	defer cancel()
	table, t := e.warm, (*writeTx)(nil)
	e.warm = nil // unless this succeeds
	warm := table != nil && e.contended == 0 && table.cache == e.cache.Load()
	j := e.judging
	if warm {
		table.ctx, table.assume = ctx, make(map[string]struct{})
		j.begin(table)
		err = j.prefetch(ctx, batch)
	} else {
		table, t, err = e.lock(ctx, batch)
		defer func() { t.rollback() }()
	}
	if err != nil {
		j.state.Cache.Forget()
		return batch, nil, behind(err)
	}
	if !warm && more { // they came while another process held the store
		taken := len(batch)
		batch = e.waiting(batch)
		batch = batch[:taken+len(take(batch[taken:]))]
		if late := batch[taken:]; len(late) > 0 {
			err = j.prefetch(ctx, late)
		}
	}
	before := table.is
	r := &row{first: before.next(), id: newID(), counts: before.counts, forgets: before.forgets}
	j.row = r
	full, refused := false, false
	done = batch
	for i, p := range batch {
		was := r.count
		if err == nil {
			p.receipt, p.err = e.judge(p)
		}
		if errors.Is(p.err, errFull) {
			done, rest, p.err = batch[:i], batch[i:], nil
			break
		}
		refused = refused || p.err != nil
		if broken(p.err) {
			err = p.err
		}
		if r.count > was {
			full = full || p.full
		}
	}
	switch {
	case err != nil:
	case warm && refused && len(table.assume) > 0:
		err = errBehind // perhaps because of what was assumed
	case r.count == 0 && warm:
		if len(table.assume) > 0 {
			err = errBehind
		} else {
			err = again(ctx, func(ctx context.Context) error { return e.log.has(ctx, before.head) })
		}
	case r.count == 0:
	default:
		if !warm && r.count >= manyCommits { // others wait for the store
			full = false
		}
		if err = j.seal(); err == nil {
			if warm {
				err = e.log.write(ctx, before.head, r, durabilityOf(full))
			} else {
				err = e.writeRow(ctx, t, before.head, r, durabilityOf(full))
			}
		}
	}
	if err != nil {
		j.state.Cache.Forget()
		return done, rest, behind(err)
	}
	e.taken(table, before, r, full)
	for _, p := range done {
		p.cache, p.head = table.cache, e.head
	}
	return done, rest, nil
}

// behind returns errBehind for a state that can no longer be read.
func behind(err error) error {
	if errors.Is(err, errGone) {
		return fmt.Errorf("%w: %w", errBehind, err)
	}
	return err
}

// broken reports whether an error in judging is of the server or the store, and not of the commit.
func broken(err error) bool {
	return err != nil && (errors.Is(err, errBehind) || errors.Is(err, errGone) || errors.Is(err, backend.ErrCorrupt) || lost(err) || sqlState(err) != "")
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
		number, err := applied(j.table, o, func(c backend.Cursor) error { return e.log.follows(j.table.ctx, c) })
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
		if receipt.Cursor = j.table.is.Cursor; j.row.count > 0 {
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

// cursorOf returns the cursor of a commit, possibly in the row that is being made.
func (e *Engine) cursorOf(j *judging, number uint64) (backend.Cursor, error) {
	if number >= j.row.first {
		return backend.Cursor{Number: number, ID: j.row.id}, nil
	}
	return e.log.cursorOf(j.table.ctx, number)
}

// taken records a row that the log has, if it has commits. The table is then that of the state after it.
func (e *Engine) taken(t *table, before state, r *row, full bool) {
	is := before
	if r.count > 0 {
		is = before.after(r)
	}
	changed := t.contextsChanged()
	made := t.over.Bytes()
	t.settle(is, r.entries)
	t.fetch = func(ctx context.Context, n need) (found, error) { return e.log.at(ctx, t.is.head, n) }
	if t.bytes += made; len(t.values) < mostWarm && t.bytes < mostWarmBytes {
		e.warm = t
	}
	e.head = is.head
	t.cache.saw(is)
	t.cache.remember(changed, t)
	if r.count == 0 {
		return
	}
	if full {
		t.cache.durable.know(r.last())
	}
	e.changed.announce()
	e.pruneLater(r)
}

// mostWarm and mostWarmBytes limit the entries that are kept from one batch to the next.
const (
	mostWarm      = 1 << 16
	mostWarmBytes = 16 << 20
)

// lock begins a write transaction, and reads what judging the commits reads.
func (e *Engine) lock(ctx context.Context, batch []*pending) (*table, *writeTx, error) {
	var t *writeTx
	c := e.cache.Load()
	table := newTable(ctx, c, e.log.identity, c.last().state(), nil) // what it has is at least that old
	j := e.judging
	table.fetch = func(ctx context.Context, n need) (f found, err error) {
		if t != nil {
			if f, err = t.read(ctx, n); lost(err) || uncertain(err) { // nothing was written yet
				err = fmt.Errorf("%w: %w", errBehind, err)
			}
			return f, err
		}
		known := c.last()
		var is state
		var there bool
		err = again(ctx, func(ctx context.Context) (err error) {
			t, is, f, there, err = e.log.lock(ctx, known, n)
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
		case is.head != e.head:
			j.state.Cache.ForgetCurrent()
		}
		if e.contended = max(e.contended-1, 0); is.head != e.head {
			if e.head != (head{}) {
				e.contended = mostContended
			}
		}
		table.is = is
		j.counts = keys.CountersOf(is.counts)
		c.saw(is)
		return f, nil
	}
	j.begin(table)
	folded := table.is.folded
	err := j.prefetch(ctx, batch)
	if err == nil && t == nil { // nothing had to be read
		_, err = table.fetch(ctx, need{})
	}
	if err == nil && table.is.folded != folded { // what was unfolded before was left out
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
	if err == nil || !uncertain(err) && !lost(err) {
		return explain(err)
	}
	return e.log.resolve(ctx, h, r, d, err)
}

// fail fails commits.
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
	n := need{Need: read.Need{Keys: [][]byte{keys.Of(keys.TableRequests, o.Session[:]), keys.Of(keys.TableRequests)}}}
	return latest(ctx, e, n, func(t *table) (backend.Receipt, error) {
		number, err := applied(t, &o, func(c backend.Cursor) error { return e.log.follows(ctx, c) })
		if err == nil && number == 0 {
			err = fmt.Errorf("request %d of session %x: %w", o.Sequence, o.Session, backend.ErrNotFound)
		}
		if err != nil {
			return backend.Receipt{}, err
		}
		at, err := e.log.cursorOf(ctx, number)
		if err == nil && e.o.Durability == backend.Full {
			if err = e.flush(ctx, t.cache, t.is.head); errors.Is(err, errDiverged) {
				err = errGone // so that it is looked up again
			}
		}
		return backend.Receipt{Cursor: at, Repeated: true}, err
	})
}

// Forget implements backend.Engine.
func (e *Engine) Forget(ctx context.Context, id [16]byte) error {
	e.writing.Lock()
	defer e.writing.Unlock()
	if e.closed.Load() {
		return errClosed
	}
	e.warm = nil
	return again(ctx, func(ctx context.Context) error { // to forget twice is harmless
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
			e.log.store, int64(t.is.epoch), change.Key, -int64(t.is.Number), change.Value)
		former = append(former, change.Key)
	}
	b.Queue(`INSERT INTO lineage_former (store, epoch, n, part, keys) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (store, epoch, n, part) DO NOTHING`,
		e.log.store, int64(t.is.epoch), int64(t.is.Number), -1-int32(t.is.forgets%(1<<30)), former)
	b.Queue(`UPDATE lineage_head SET forgets = forgets + 1 WHERE store = $1 AND epoch = $2`, e.log.store, int64(t.is.epoch)) // whoever judged before has another horizon
	return held.commit(limited, &b)
}
