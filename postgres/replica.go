package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/lineage/backend"
)

// renew opens the replica if there is none, and lets it catch up. If the log does not have what the
// replica has, the replica is rebuilt. The turn is held.
func (e *Engine) renew(ctx context.Context) error {
	for range mostRetries {
		if e.replica == nil {
			if err := e.openReplica(ctx); err != nil {
				return err
			}
		}
		err := e.catchUp(ctx)
		var damage *backend.CorruptError
		switch {
		case err == nil:
			e.complete()
			return nil
		case errors.Is(err, errDiverged), errors.Is(err, backend.ErrReadOnly), errors.As(err, &damage) && e.o.Replica != "" && !strings.HasSuffix(damage.File, "the log"):
			e.rebuilding(ctx, err)
			if err := e.drop(true); err != nil {
				return err
			}
		default:
			return err
		}
	}
	return fmt.Errorf("the log changed %d times while it was read: %w", mostRetries, backend.ErrDiverged)
}

// openReplica opens the replica, or an empty one if there was a collection since it was closed.
func (e *Engine) openReplica(ctx context.Context) error {
	is, err := e.log.collected(ctx)
	if err != nil {
		return err
	}
	o := embedded.Options{
		Durability: backend.Normal,
		InMemory:   e.o.Replica == "",
		ID:         is.replica(e.log.identity),
		Logger:     e.o.Logger,
		Sequence:   func(c embedded.Sequenced) (uint64, error) { return e.write(c) },
	}
	replica, err := embedded.Open(ctx, e.o.Replica, o)
	if err == nil && replica.StoreID() != o.ID {
		err = errors.Join(replica.Close(), errCollected)
	}
	if errors.Is(err, backend.ErrCorrupt) || errors.Is(err, errCollected) {
		e.rebuilding(ctx, err)
		if err = e.remove(); err == nil {
			replica, err = embedded.Open(ctx, e.o.Replica, o)
		}
	}
	if err != nil {
		return fmt.Errorf("replica: %w", err)
	}
	at, err := replica.Head(ctx)
	h := head{epoch: is.epoch}
	if err == nil && at.Number > 0 {
		if h, err = e.log.rowOf(ctx, at); err == nil && h.epoch != is.epoch {
			err = errCollected
		}
	}
	if errors.Is(err, errDiverged) {
		if err = errors.Join(replica.Close(), e.remove()); err == nil {
			return e.openReplica(ctx)
		}
	}
	if err != nil {
		return errors.Join(err, replica.Close())
	}
	e.reads.Lock()
	defer e.reads.Unlock()
	e.replica, e.live = replica, is.live
	e.setHead(h)
	return nil
}

// replicaName is the start of the name of a replica; the id of the store follows.
const replicaName = "replica-"

// errAway ends the opening of a replica that is removed.
var errAway = errors.New("the replica was removed")

// RemoveReplicas removes the replicas in a directory. A replica that a process uses stays, and the
// error is ErrLocked.
func RemoveReplicas(ctx context.Context, dir string) error {
	replicas, err := filepath.Glob(filepath.Join(dir, replicaName+"*"))
	errs := []error{err}
	for _, path := range replicas {
		errs = append(errs, removeReplica(ctx, path))
	}
	return errors.Join(errs...)
}

// removeReplica removes a replica under its lock. It is ErrLocked if another process uses the replica.
// The lock file stays: a process that has opened it would lock a file that no other process finds.
func removeReplica(ctx context.Context, dir string) error {
	_, err := embedded.Open(ctx, dir, embedded.Options{Locked: func() error {
		files, err := os.ReadDir(dir)
		errs := []error{err}
		for _, f := range files {
			if f.Name() != embedded.LockFile {
				errs = append(errs, os.RemoveAll(filepath.Join(dir, f.Name())))
			}
		}
		return cmp.Or(errors.Join(errs...), errAway)
	}})
	if errors.Is(err, errAway) {
		return nil
	}
	return err
}

func (e *Engine) rebuilding(ctx context.Context, why error) {
	level := slog.LevelWarn
	if errors.Is(why, errCollected) {
		level = slog.LevelInfo
	}
	e.o.Logger.Log(ctx, level, "the replica is rebuilt", "store", e.o.Store, "err", why)
}

// remove removes the files of the replica, if it has any. It is closed.
func (e *Engine) remove() error {
	if e.o.Replica == "" {
		return nil
	}
	return removeReplica(context.Background(), e.o.Replica)
}

// drop closes a replica that differs from the log. Its snapshots expire. The turn is held.
func (e *Engine) drop(remove bool) error {
	e.reads.Lock()
	defer e.reads.Unlock()
	return e.dropLocked(remove)
}

// dropLocked is drop with reads held.
func (e *Engine) dropLocked(remove bool) error {
	replica := e.replica
	e.replica, e.live, e.head, e.whole = nil, nil, head{}, false
	e.known.Store(nil)
	e.durable.Store(new(durable))
	var err error
	if replica != nil {
		err = replica.Close()
	}
	if remove && err == nil {
		err = e.remove()
	}
	return err
}

// catchUp adds the new rows of the log to the replica. The turn is held.
func (e *Engine) catchUp(ctx context.Context) error {
	limit, more, total := uint64(fewCommits), true, uint64(0)
	if e.o.Progress != nil && e.head.first == 0 {
		last, err := e.log.last(ctx)
		if err != nil {
			return err
		}
		total = last.Number
	}
	for more {
		var rows []row
		err := again(ctx, func(ctx context.Context) (err error) {
			rows, more, err = e.log.tail(ctx, e.log.pool, e.head, limit)
			return err
		})
		if err == nil {
			err = e.follow(ctx, rows)
		}
		if err != nil {
			return err
		}
		if total > 0 {
			e.o.Progress(int64(e.head.Number), int64(max(total, e.head.Number)))
		}
		limit = mostCommits
	}
	return nil
}

// follow adds rows to the replica. The turn is held.
func (e *Engine) follow(ctx context.Context, rows []row) error {
	for i := range rows {
		commits, _, err := rows[i].left(e.live, new(backend.CollectReport))
		if err != nil {
			return err
		}
		for _, c := range commits {
			if err := e.replica.Follow(context.WithoutCancel(ctx), c); err != nil {
				return errors.Join(err, e.drop(true)) // it may have part of the row
			}
		}
		e.setHead(e.head.after(&rows[i]))
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	if e.live != nil && e.head.Number >= e.live.Until {
		e.live = nil
	}
	if len(rows) > 0 {
		e.changed.announce()
	}
	return nil
}

// setHead records the last row that both the replica and the log have. The turn is held.
func (e *Engine) setHead(h head) {
	if e.head = h; e.whole {
		e.known.Store(&h)
	}
}

// complete shows readers a replica that has caught up. The turn is held.
func (e *Engine) complete() {
	if e.whole {
		return
	}
	e.reads.Lock()
	defer e.reads.Unlock()
	e.whole = true
	e.setHead(e.head)
}

// rowOf returns the row whose last commit has a cursor.
func (l *log) rowOf(ctx context.Context, at backend.Cursor) (h head, err error) {
	err = again(ctx, func(ctx context.Context) (err error) {
		if h, err = l.newest(ctx, at.Number); err == nil && h.Cursor != at {
			return errDiverged
		}
		return err
	})
	return h, err
}

// last returns the cursor of the last commit in the log.
func (l *log) last(ctx context.Context) (at backend.Cursor, err error) {
	err = again(ctx, func(ctx context.Context) error {
		h, err := l.newest(ctx, math.MaxInt64)
		at = h.Cursor
		return err
	})
	return at, err
}

// looks lets the replica catch up for readers. Concurrent readers share a look, which begins after
// they asked.
type looks struct {
	mu   sync.Mutex
	next *look // not begun yet; the next reader makes one if nil
	busy bool  // a look is running
}

// look is one look at the log.
type look struct {
	done chan struct{}
	err  error
}

// fresh returns when the replica has everything that was in the log at the time of the call.
func (e *Engine) fresh(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	l := &e.looks
	l.mu.Lock()
	if e.closed.Load() {
		l.mu.Unlock()
		return errClosed
	}
	next := l.next
	if next == nil {
		next = &look{done: make(chan struct{})}
		l.next = next
		if !l.busy {
			l.busy = true
			e.going.Go(e.look)
		}
	}
	l.mu.Unlock()
	select {
	case <-next.done:
		return next.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// look looks at the log until no reader waits.
func (e *Engine) look() {
	l := &e.looks
	for {
		l.mu.Lock()
		now := l.next
		if l.next = nil; now == nil {
			l.busy = false
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
		now.err = e.lookOnce(e.ctx)
		close(now.done)
	}
}

// lookOnce lets the replica catch up. It takes the turn only if the log has new rows.
func (e *Engine) lookOnce(ctx context.Context) error {
	if known := e.known.Load(); known != nil {
		err := again(ctx, func(ctx context.Context) error { return e.log.has(ctx, *known) })
		if !errors.Is(err, errBehind) {
			return err
		}
	}
	e.turn.Lock()
	defer e.turn.Unlock()
	if e.closed.Load() {
		return errClosed
	}
	return e.renew(ctx)
}
