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

// renew opens the replica if there is none, and brings it up to the log. If the log does not have
// what the replica has, the replica is made again. The turn is held.
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
			e.madeAgain(ctx, err)
			if err := e.drop(true); err != nil {
				return err
			}
		default:
			return err
		}
	}
	return fmt.Errorf("the log changed %d times while it was read: %w", mostRetries, backend.ErrDiverged)
}

// openReplica opens the replica as it was left, unless the store was collected since.
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
		e.madeAgain(ctx, err)
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

// replicaName begins the name of a replica in its directory; the identity of the store ends it.
const replicaName = "replica-"

// errAway ends the opening of a replica that was removed.
var errAway = errors.New("the replica was removed")

// RemoveReplicas removes the replicas in a directory. Where a process uses one, that one stays and
// the error is ErrLocked.
func RemoveReplicas(ctx context.Context, dir string) error {
	replicas, err := filepath.Glob(filepath.Join(dir, replicaName+"*"))
	errs := []error{err}
	for _, path := range replicas {
		errs = append(errs, removeReplica(ctx, path))
	}
	return errors.Join(errs...)
}

// removeReplica removes a replica under its lock. It is ErrLocked where another process uses it. The
// lock file stays: another process may have opened it, and would lock a file that nobody else sees.
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

func (e *Engine) madeAgain(ctx context.Context, why error) {
	level := slog.LevelWarn
	if errors.Is(why, errCollected) {
		level = slog.LevelInfo
	}
	e.o.Logger.Log(ctx, level, "the replica is made again", "store", e.o.Store, "err", why)
}

// remove removes the replica from its directory, if it has one. It is closed.
func (e *Engine) remove() error {
	if e.o.Replica == "" {
		return nil
	}
	return removeReplica(context.Background(), e.o.Replica)
}

// drop lets go of a replica that is not what the log says. Its snapshots expire. The turn is held.
func (e *Engine) drop(remove bool) error {
	e.reads.Lock()
	defer e.reads.Unlock()
	return e.dropLocked(remove)
}

// dropLocked is drop for who has reads as well.
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

// catchUp brings the replica up to the log. The turn is held.
func (e *Engine) catchUp(ctx context.Context) error {
	limit, more, total := fewRows, true, uint64(0)
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
		limit = mostRows
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
				return errors.Join(err, e.drop(true)) // it may have a part of the row
			}
		}
		e.setHead(e.head.behind(&rows[i]))
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	if e.live != nil && e.head.Number >= e.live.Until() {
		e.live = nil
	}
	if len(rows) > 0 {
		e.changed.announce()
	}
	return nil
}

// setHead notes the last row that the replica has, and that the log has. The turn is held.
func (e *Engine) setHead(h head) {
	if e.head = h; e.whole {
		e.known.Store(&h)
	}
}

// complete shows a replica to readers that has been brought up to the log. The turn is held.
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

// looks brings the replica up to the log for readers, who share a look that begins after they
// asked.
type looks struct {
	mu   sync.Mutex
	next *look // not begun yet; nil when the next reader makes one
	busy bool  // a look is under way
}

// look is one look at the log.
type look struct {
	done chan struct{}
	err  error
}

// fresh returns when the replica has everything that was in the log when it was called.
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

// look looks at the log as long as readers ask for it.
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

// lookOnce brings the replica up to the log, and takes the turn only if the log has more.
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
