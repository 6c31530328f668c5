package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/lineage-store/lineage/internal/embedded/keys"
)

// mostContended is the number of batches that lock the store before they are judged, after another process wrote.
const mostContended = 16

// locking reads the state of the store, in a transaction that locks the store.
type locking struct {
	engine *Engine
	cache  *cache
	reader *stateReader
	tx     *writeTx // nil until the first read, which locks the store
}

// lock begins a write transaction, which locks the store, and reads what judging some commits reads. writing is held.
func (e *Engine) lock(ctx context.Context, batch []*pending) (*stateReader, *writeTx, error) {
	l := &locking{engine: e, cache: e.cache.Load()}
	l.reader = newStateReader(ctx, l.cache, e.log.identity, l.cache.last().state(), l.fetch) // what it has is at least that old
	e.judging.begin(l.reader)
	if err := l.prefetch(ctx, batch); err != nil {
		l.tx.rollback()
		return nil, nil, err
	}
	return l.reader, l.tx, nil
}

// prefetch locks the store and reads what judging commits reads.
func (l *locking) prefetch(ctx context.Context, batch []*pending) error {
	j, folded := l.engine.judging, l.reader.state.folded
	err := j.prefetch(ctx, batch)
	if err == nil && l.tx == nil { // nothing had to be read
		_, err = l.fetch(ctx, need{})
	}
	if err == nil && l.reader.state.folded != folded { // what was unfolded before was left out
		err = j.prefetch(ctx, batch)
	}
	return err
}

// fetch reads in the transaction. The first call begins it.
func (l *locking) fetch(ctx context.Context, n need) (fetchResult, error) {
	if l.tx == nil {
		return l.begin(ctx, n)
	}
	f, err := l.tx.read(ctx, n)
	if isTransient(err) || mayHaveWritten(err) { // nothing was written yet
		err = fmt.Errorf("%w: %w", errBehind, err)
	}
	return f, err
}

// begin begins the transaction, and reads the state and what is needed. It is errDiverged if the lock has to be tried again.
func (l *locking) begin(ctx context.Context, n need) (fetchResult, error) {
	e, known := l.engine, l.cache.last()
	var r stateRead
	err := withRetry(ctx, func(ctx context.Context) (err error) {
		l.tx, r, err = e.log.lock(ctx, known, n)
		return err
	})
	switch {
	case errors.Is(err, errUnfilled): // a program of an earlier version wrote
		if err = e.fill(ctx); err == nil {
			err = errDiverged
		}
	case errors.Is(err, errDiverged) || err == nil && !r.there:
		if err = e.replaceCache(ctx, l.cache); err == nil {
			err = errDiverged
		}
	}
	if err == nil {
		l.setState(r.state)
	}
	return r.found, err
}

// setState sets the state that is locked.
func (l *locking) setState(st state) {
	e := l.engine
	switch {
	case l.cache != e.judgedIn:
		e.judging.state.Cache.Forget()
		e.judgedIn = l.cache
	case st.head != e.head:
		e.judging.state.Cache.ForgetCurrent()
	}
	e.contended = max(e.contended-1, 0)
	if st.head != e.head && e.head != (head{}) { // another process wrote
		e.contended = mostContended
	}
	l.reader.state = st
	e.judging.counts = keys.CountersOf(st.counts)
	l.cache.advance(st)
}
