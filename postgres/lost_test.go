package postgres

import (
	"encoding/binary"
	"errors"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// cutter cuts one connection at one message that is sent to the server.
type cutter struct {
	mu    sync.Mutex
	at    int // message to cut at, from 1; 0 for none
	where cut
	count int
	said  []byte // an answer of its own, before it cuts
}

// cut is where a connection is cut, seen from a message.
type cut int

const (
	before   cut = iota // nothing of it is sent
	within              // half of it is sent
	after               // all of it is sent, and no answer is waited for
	answered            // the server has answered, and nobody hears that
	cuts
)

func (c *cutter) arm(at int, where cut) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.where, c.count = at, where, 0
}

// hits counts a message, and reports whether the connection is to be cut there.
func (c *cutter) hits() (cut, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count++
	return c.where, c.at > 0 && c.count == c.at
}

// reached reports whether the message came at which to cut.
func (c *cutter) reached() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count >= c.at
}

// wire is a connection that a cutter may cut.
type wire struct {
	net.Conn
	cutter *cutter
	deaf   bool   // the next answer is not heard; set before it is read
	said   []byte // what is heard instead
}

var errCut = &net.OpError{Op: "cut", Err: errors.New("for the test")}

func (w *wire) Write(b []byte) (int, error) {
	where, hit := w.cutter.hits()
	if !hit {
		return w.Conn.Write(b)
	}
	switch where {
	case before:
		b = nil
	case within:
		b = b[:len(b)/2]
	case answered:
		w.deaf, w.said = true, w.cutter.said
		return w.Conn.Write(b)
	}
	n, _ := w.Conn.Write(b)
	w.Conn.Close()
	return n, errCut
}

func (w *wire) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	if w.deaf {
		w.Conn.Close()
		if n = copy(b, w.said); n > 0 {
			w.said = w.said[n:]
			return n, nil
		}
		return 0, errCut
	}
	return n, err
}

// TestCutConnections cuts the connection before, within and after each message of writing and
// reading: what is written is written once, and nobody needs to open the store again.
func TestCutConnections(t *testing.T) {
	dsn := pgtest.DSN(t)
	c := &cutter{}
	pool := cuttable(t, dsn, c)
	witnesses := newPool(t, dsn, nil)
	one := func(e *Engine, contended int, full bool) func() (int, error) {
		return func() (int, error) {
			e.writing.Lock()
			e.contended = contended
			e.writing.Unlock()
			d := backend.Normal
			if full {
				d = backend.Full
			}
			_, commit := threadCommit()
			_, err := e.Apply(background, commit, backend.Options{Durability: d})
			return 1, err
		}
	}
	for name, operation := range map[string]func(e *Engine) func() (int, error){
		"alone":  func(e *Engine) func() (int, error) { return one(e, 0, true) },
		"normal": func(e *Engine) func() (int, error) { return one(e, 0, false) },
		"locked": func(e *Engine) func() (int, error) { return one(e, 2, true) },
		"reading": func(e *Engine) func() (int, error) {
			return func() (int, error) { _, err := e.Head(background); return 0, err }
		},
		"following": func(e *Engine) func() (int, error) {
			return func() (int, error) {
				if _, err := one(e, 0, false)(); err != nil {
					return 0, err
				}
				_, err := e.settle(background)
				return 1, err
			}
		},
		"together": func(e *Engine) func() (int, error) {
			return func() (int, error) {
				batch := make([]*pending, 3)
				for i := range batch {
					_, commit := threadCommit()
					batch[i] = &pending{ctx: background, commit: commit, full: true, done: make(chan struct{})}
					batch[i].o.Durability = backend.Normal
				}
				rest := e.commitAndWait(batch)
				return len(batch) - len(rest), errors.Join(batch[0].err, batch[1].err, batch[2].err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.arm(0, 0)
			e := handle(t, pool, name)
			other := handle(t, witnesses, name)
			do := operation(e)
			expected := uint64(0)
			for where := range cuts {
				for at := 1; ; at++ {
					createThread(t, other, backend.Full) // which the handle has to hear of
					expected++
					c.arm(at, where)
					n, err := do()
					reached := c.reached()
					c.arm(0, 0)
					require.NoError(t, err, "cut %d at message %d", where, at)
					expected += uint64(n)
					head, err := other.Head(background)
					require.NoError(t, err)
					require.Equal(t, expected, head.Number, "cut %d at message %d", where, at)
					if !reached {
						break
					}
				}
			}
			require.Equal(t, history(t, other), history(t, e))
			requireSound(t, other)
		})
	}
}

// TestTerminatedBackends ends processes of the server while several handles write, again after a few commits. Every commit
// that was acknowledged is there once, and those of which it is not known at most once.
func TestTerminatedBackends(t *testing.T) {
	dsn := pgtest.DSN(t)
	pools := []*pgxpool.Pool{newPool(t, dsn, nil), newPool(t, dsn, nil)}
	witnesses := newPool(t, dsn, func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["application_name"] = "witness" })
	engines := []*Engine{handle(t, pools[0], "s"), handle(t, pools[1], "s")}
	l := newLoad(engines...)
	underLoad(t, l, campaign.Rounds(40), 3, func(int) {
		_, err := witnesses.Exec(background, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND application_name <> 'witness' AND pid <> pg_backend_pid() AND random() < 0.6`, exec)
		require.NoError(t, err)
	})
	l.check(t, handle(t, witnesses, "s"), false)
}

// TestRefusedByTheServer has the server refuse rows, as with a full disk: nothing of them is there,
// reading goes on, and so does writing once the server takes rows again.
func TestRefusedByTheServer(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), nil)
	e, other := handle(t, pool, "s"), handle(t, pool, "s")
	kept, _ := createThread(t, e, backend.Full)
	together := func() []*pending {
		batch := make([]*pending, 3)
		for i := range batch {
			_, commit := threadCommit()
			batch[i] = &pending{ctx: background, commit: commit, full: true, done: make(chan struct{})}
		}
		require.Empty(t, e.commitAndWait(batch))
		return batch
	}
	_, err := pool.Exec(background, `ALTER TABLE lineage_log ADD CONSTRAINT full_disk CHECK (n < 2)`, exec)
	require.NoError(t, err)
	// What says nothing new after a commit that was refused fails too. Each is judged alone then.
	block, _ := threadCommit()
	same := make([]*pending, 3)
	for i := range same {
		same[i] = &pending{ctx: background, commit: &structure.Commit{Records: []structure.Record{textBlock("said")}}, done: make(chan struct{})}
	}
	same[2].commit = &structure.Commit{Records: []structure.Record{&structure.Deletion{Subject: structure.KindThread, Thread: block}}}
	require.Empty(t, e.commitAndWait(same))
	for _, p := range same[:2] {
		require.ErrorContains(t, p.err, "full_disk")
		require.Zero(t, p.receipt)
	}
	require.ErrorIs(t, same[2].err, backend.ErrNotFound)
	for range 2 {
		for _, p := range together() {
			require.ErrorContains(t, p.err, "full_disk")
			require.NotErrorIs(t, p.err, backend.ErrUncertain)
		}
		_, err = e.Thread(background, kept)
		require.NoError(t, err)
		require.Len(t, history(t, e), 1)
	}
	_, err = pool.Exec(background, `ALTER TABLE lineage_log DROP CONSTRAINT full_disk`, exec)
	require.NoError(t, err)
	for range 2 {
		for _, p := range together() {
			require.NoError(t, p.err)
		}
	}
	require.Len(t, history(t, e), 7)
	require.Equal(t, history(t, other), history(t, e))
	requireSound(t, e)
}

// TestCommitsThatComeDuringALock has commits come while a batch waits for the store: they share its row.
func TestCommitsThatComeDuringALock(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), nil)
	e := handle(t, pool, "s")
	waiting := func() *pending {
		_, commit := threadCommit()
		return &pending{ctx: background, commit: commit, full: true, done: make(chan struct{})}
	}
	e.writing.Lock()
	first, late, given := waiting(), []*pending{waiting(), waiting(), waiting()}, []*pending{waiting(), waiting()}
	late[1].claimed.Store(true) // its caller no longer waits
	e.queue <- first
	for len(e.queue) > 0 { // until the goroutine that writes batches has it
		runtime.Gosched()
	}
	for _, p := range late {
		e.queue <- p
	}
	done, rest := e.commitAsRow(given, true)
	require.Equal(t, []*pending{given[0], given[1], late[0], late[2]}, done)
	require.Empty(t, rest)
	for _, p := range done {
		require.NoError(t, p.err)
	}
	e.writing.Unlock()
	<-first.done
	require.NoError(t, first.err)
	rows, err := pool.Query(background, `SELECT count FROM lineage_log ORDER BY n`, exec)
	require.NoError(t, err)
	counts, err := pgx.CollectRows(rows, pgx.RowTo[int])
	require.NoError(t, err)
	require.Equal(t, []int{4, 1}, counts)
	requireSound(t, e)
}

// The server refuses a row of commits of which some came during the lock: each of them gets its own answer.
func TestRefusedWithThoseThatCame(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), nil)
	e := handle(t, pool, "s")
	_, err := pool.Exec(background, `ALTER TABLE lineage_log ADD CONSTRAINT alone CHECK (count = 1)`, exec)
	require.NoError(t, err)
	waiting := func() *pending {
		_, commit := threadCommit()
		return &pending{ctx: background, commit: commit, full: true, done: make(chan struct{})}
	}
	e.writing.Lock()
	first, late, given := waiting(), []*pending{waiting(), waiting(), waiting()}, []*pending{waiting(), waiting()}
	e.queue <- first
	for len(e.queue) > 0 { // until the goroutine that writes batches has it
		runtime.Gosched()
	}
	e.queue <- late[0]
	late[1].claimed.Store(true)
	done, rest := e.commitAsRow(given, true)
	e.queue <- late[2]
	require.Equal(t, []*pending{given[0], given[1], late[0]}, done)
	require.Empty(t, rest)
	for _, p := range done {
		require.NoError(t, p.err)
		require.NotZero(t, p.receipt.Number)
	}
	_, err = pool.Exec(background, `ALTER TABLE lineage_log DROP CONSTRAINT alone`, exec)
	require.NoError(t, err)
	e.writing.Unlock()
	<-first.done
	<-late[2].done
	require.Len(t, history(t, e), 5)
	requireSound(t, e)
}

// The server ends the connection of a batch that holds the store, and another process writes. The batch is judged
// again: its outcome is known.
func TestOvertakenBatchIsJudgedAgain(t *testing.T) {
	dsn, after := pgtest.DSN(t), &afterBatch{afterQuery{func() {}}}
	e := handle(t, newPool(t, dsn, func(c *pgxpool.Config) {
		c.ConnConfig.Tracer, c.ConnConfig.RuntimeParams["application_name"] = after, "victim"
	}), "s")
	witnesses := newPool(t, dsn, nil)
	other := handle(t, witnesses, "s")
	require.NoError(t, e.Sync(background))
	batch := make([]*pending, 3)
	for i := range batch {
		_, commit := threadCommit()
		batch[i] = &pending{ctx: background, commit: commit, full: true, done: make(chan struct{})}
	}
	after.do = func() {
		after.do = func() {}
		_, err := witnesses.Exec(background, `SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE application_name = 'victim' AND datname = current_database()`, exec)
		require.NoError(t, err)
		createThread(t, other, backend.Full)
	}
	rest := batch
	for len(rest) > 0 {
		rest = e.commitAndWait(rest)
	}
	for _, p := range batch {
		require.NoError(t, p.err)
	}
	require.Len(t, history(t, other), 4)
	require.Equal(t, history(t, other), history(t, e))
	requireSound(t, e)
}

// A pooler that gives up on a statement may say so with the code of a cancelled one, and close the connection. The server may
// have committed nevertheless.
func TestCancelledByAPooler(t *testing.T) {
	former := patience
	defer func() { patience = former }()
	dsn := pgtest.DSN(t)
	fields := "SFATAL\x00VFATAL\x00C" + queryCanceled + "\x00Mquery timeout\x00\x00"
	c := &cutter{said: append(binary.BigEndian.AppendUint32([]byte("E"), uint32(4+len(fields))), fields...)}
	e, other := handle(t, cuttable(t, dsn, c), "s"), handle(t, newPool(t, dsn, nil), "s")
	createThread(t, e, backend.Full)
	patience = time.Millisecond
	c.arm(1, answered)
	_, commit := threadCommit()
	_, err := e.Apply(background, commit, backend.Options{})
	require.True(t, c.reached())
	c.arm(0, 0)
	patience = former
	require.Len(t, history(t, other), 2)
	require.ErrorContains(t, err, "query timeout")
	require.ErrorIs(t, err, backend.ErrUncertain)
}
