package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/structure"
)

// all collects everything that nothing uses.
var all = backend.CollectOptions{KeepReflog: -1, KeepUnused: -1}

// secret is in every text that has to go.
const secret = "nobody shall read this"

// erased is how the tests name a text that was erased.
const erased = "(erased)"

// tell makes a thread in which something is said.
func tell(t testing.TB, e *Engine, texts ...string) *lineage.Thread {
	t.Helper()
	thread, err := lineage.New(e).CreateThread(background, lineage.ThreadOptions{Title: texts[0]})
	require.NoError(t, err)
	main, err := thread.Active(background)
	require.NoError(t, err)
	for _, text := range texts {
		_, err = main.Extend(background, lineage.User(text))
		require.NoError(t, err)
	}
	return thread
}

// requireSaid checks what is said in a thread, read through a handle.
func requireSaid(t testing.TB, e *Engine, thread *lineage.Thread, texts ...string) {
	t.Helper()
	thread, err := lineage.New(e).Thread(background, thread.ID())
	require.NoError(t, err)
	main, err := thread.Active(background)
	require.NoError(t, err)
	entries, err := main.All(background)
	require.NoError(t, err)
	var is []string
	for i := range entries {
		text, err := lineage.New(e).Text(background, entries[i])
		if errors.Is(err, backend.ErrErased) {
			text, err = erased, nil
		}
		require.NoError(t, err)
		is = append(is, text)
	}
	require.True(t, slices.Equal(texts, is), "%.200q", is)
}

// rowsWith returns the rows of all logs in which a text is found, as they are and decoded.
func rowsWith(t testing.TB, pool *pgxpool.Pool, text string) (found []uint64) {
	t.Helper()
	result, err := pool.Query(background, `SELECT n, count, id, data, 0::bigint FROM lineage_log ORDER BY n`, exec)
	require.NoError(t, err)
	rows, err := readRows(result)
	require.NoError(t, err)
	for _, r := range rows {
		commits, err := r.commits()
		require.NoError(t, err)
		has := bytes.Contains(r.data, []byte(text))
		for _, c := range commits {
			commit, err := structure.DecodeCommit(c.Payload)
			require.NoError(t, err)
			has = has || strings.Contains(described(commit), text)
		}
		if has {
			found = append(found, r.first)
		}
	}
	return found
}

// described returns all that a commit says.
func described(c *structure.Commit) string {
	var b strings.Builder
	for _, r := range c.Records {
		fmt.Fprintf(&b, "%+v\n", r)
		switch r := r.(type) {
		case *structure.Block:
			b.Write(r.Body)
		case *structure.Chunk:
			b.Write(r.Bytes)
		case *structure.Thread:
			b.Write(r.Metadata)
		case *structure.Value:
			b.Write(r.JSON)
		case *structure.Span:
			for _, u := range r.Usages {
				b.Write(u.Metadata)
			}
		}
	}
	return b.String()
}

// unfinished returns how many collections are not finished.
func unfinished(t testing.TB, pool *pgxpool.Pool) (n int) {
	t.Helper()
	require.NoError(t, pool.QueryRow(background, `SELECT count(*) FROM lineage_collection`, exec).Scan(&n))
	return n
}

// TestCollectedLeavesNoBytes deletes and erases, and collects: no row of any table has it any more, and what stays is the
// same for everybody.
func TestCollectedLeavesNoBytes(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), nil)
	collector := handle(t, pool, "s")
	other := tell(t, handle(t, pool, "another"), secret) // in a store that nobody collects
	large := strings.Repeat(secret+"\n", 50_000)
	kept := tell(t, collector, "before", secret+" erased", "shared", large, "after")
	gone := tell(t, collector, secret, "shared", large+"more")
	main, err := gone.Active(background)
	require.NoError(t, err)
	_, err = main.Extend(background, lineage.Item{Role: "user", Body: []byte("m"), Metadata: []byte(`{"a":"` + secret + `"}`)})
	require.NoError(t, err)
	open, own := handle(t, pool, "s"), handle(t, pool, "s")
	for _, e := range []*Engine{open, own} {
		requireSaid(t, e, kept, "before", secret+" erased", "shared", large, "after")
	}
	require.NoError(t, gone.Delete(background))
	for _, text := range []string{secret + " erased", large} {
		require.NoError(t, lineage.New(collector).Erase(background, content.Sum([]byte(text))))
	}
	require.NotEmpty(t, rowsWith(t, pool, secret))
	entries := func(store string) (n int) {
		require.NoError(t, pool.QueryRow(background, `SELECT count(*) FROM lineage_entry WHERE store = $1 AND (position($2 IN key) > 0 OR position($2 IN value) > 0)`,
			exec, keyOf(store), []byte(secret)).Scan(&n))
		return n
	}
	require.NotZero(t, entries("s"), "the title of the thread")

	report, err := own.Collect(background, all)
	require.NoError(t, err)
	require.EqualValues(t, 2, report.Erased)
	require.Greater(t, report.Bytes, uint64(len(large)))
	require.Less(t, report.After, report.Before)
	require.Equal(t, elsewhere, report.Elsewhere)
	require.Zero(t, unfinished(t, pool))
	require.Zero(t, entries("s"))
	left := rowsWith(t, pool, secret)
	require.Len(t, left, 2, "the title and the message of the store that was not collected")
	requireSaid(t, handle(t, pool, "another"), other, secret)
	var epochs int
	require.NoError(t, pool.QueryRow(background, `SELECT count(DISTINCT epoch) FROM lineage_entry WHERE store = $1`, exec, keyOf("s")).Scan(&epochs))
	require.Equal(t, 1, epochs)

	want := []string{"before", erased, "shared", erased, "after"}
	for _, e := range []*Engine{own, collector, open, handle(t, pool, "s")} {
		requireSaid(t, e, kept, want...)
		_, err := lineage.New(e).Thread(background, gone.ID())
		require.ErrorIs(t, err, backend.ErrNotFound)
		require.Equal(t, history(t, collector), history(t, e))
		requireSound(t, e)
		main, err := kept.Active(background)
		require.NoError(t, err)
		_, err = main.Extend(background, lineage.User("on"))
		require.NoError(t, err)
		want = append(want, "on")
	}
	again, err := collector.Collect(background, all)
	require.NoError(t, err)
	require.Zero(t, again.Records+again.Erased)
	require.Empty(t, again.Elsewhere)
	require.Equal(t, again.Before, again.After)
	requireSaid(t, open, kept, want...)
}

// TestCollectWhileOthersWrite has handles tell and delete threads with the same texts while another
// collects: whatever was acknowledged is there, with every text of it. It is so under every default
// isolation level, and through a pooler in transaction mode.
func TestCollectWhileOthersWrite(t *testing.T) {
	for _, level := range []string{"read committed", "repeatable read", "serializable", "pooler"} {
		t.Run(level, func(t *testing.T) {
			var pool *pgxpool.Pool
			if level == "pooler" {
				dsn, _ := pgtest.Pooled(t)(t)
				pool = newPool(t, dsn, func(c *pgxpool.Config) { c.MaxConns = 12 })
			} else {
				pool = newPool(t, pgtest.DSN(t), func(c *pgxpool.Config) {
					c.ConnConfig.RuntimeParams["default_transaction_isolation"] = level
					c.MaxConns = 12
				})
			}
			writers, collectors := []*Engine{handle(t, pool, "s"), handle(t, pool, "s"), handle(t, pool, "s")}, []*Engine{handle(t, pool, "s"), handle(t, pool, "s")}
			var mu sync.Mutex
			kept := make(map[*lineage.Thread][]string)
			var written sync.WaitGroup
			due := make(chan struct{}) // a collection, for whose begin the writer waits
			for i := range 2 * len(writers) {
				written.Go(func() {
					choose := rand.New(rand.NewPCG(uint64(i), 1))
					for n := range campaign.Rounds(13) {
						texts := make([]string, 1+choose.IntN(3))
						for i := range texts {
							texts[i] = fmt.Sprint("text ", choose.IntN(6))
						}
						thread := tell(t, writers[i%len(writers)], texts...)
						if n%4 == 2 {
							due <- struct{}{}
						}
						if choose.IntN(4) > 0 {
							err := thread.Delete(background)
							if errors.Is(err, backend.ErrExpired) { // after the deletion
								_, err = lineage.New(writers[0]).Thread(background, thread.ID())
								require.ErrorIs(t, err, backend.ErrNotFound)
								err = nil
							}
							require.NoError(t, err)
							continue
						}
						mu.Lock()
						kept[thread] = texts
						mu.Unlock()
					}
				})
			}
			go func() {
				written.Wait()
				close(due)
			}()
			var collected [2]int
			parallel(len(collectors), func(i int) {
				for range due {
					report, err := collectors[i].Collect(background, all)
					if err != nil {
						t.Errorf("collect: %v", err)
						continue
					}
					if report.Records > 0 {
						collected[i]++
					}
				}
			})
			require.Positive(t, collected[0]+collected[1])
			fresh := handle(t, pool, "s")
			for _, e := range []*Engine{fresh, writers[0], collectors[0]} {
				for thread, texts := range kept {
					requireSaid(t, e, thread, texts...)
				}
				require.Equal(t, history(t, fresh), history(t, e))
			}
			requireSound(t, fresh)
			require.Zero(t, unfinished(t, pool))
		})
	}
}

// TestCommitWaitsForCollection has a commit meet a collection that is about to be decided: it waits,
// and is judged again in the new epoch.
func TestCommitWaitsForCollection(t *testing.T) {
	for _, level := range []string{"read committed", "repeatable read", "serializable"} {
		t.Run(level, func(t *testing.T) {
			dsn := pgtest.DSN(t)
			pool := newPool(t, dsn, func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["default_transaction_isolation"] = level })
			plain := newPool(t, dsn, nil)
			e := handle(t, pool, "s")
			createThread(t, e, backend.Full)
			tx, err := plain.BeginTx(background, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
			require.NoError(t, err)
			_, err = tx.Exec(background, `SELECT FROM lineage_store FOR UPDATE`, exec)
			require.NoError(t, err)
			for _, table := range []string{"lineage_store", "lineage_entry", "lineage_head", "lineage_former"} {
				_, err = tx.Exec(background, `UPDATE `+table+` SET epoch = 77`, exec)
				require.NoError(t, err)
			}
			done := make(chan error, 1)
			go func() {
				_, c := threadCommit()
				_, err := e.Apply(background, c, backend.Options{})
				done <- err
			}()
			for waiting := 0; waiting == 0; {
				require.NoError(t, plain.QueryRow(background, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`, exec).Scan(&waiting))
				require.Empty(t, done)
			}
			require.NoError(t, tx.Commit(background))
			require.NoError(t, <-done)
			require.EqualValues(t, 77, e.head.epoch)
			require.Len(t, history(t, e), 2)
		})
	}
}

// TestCommitsBehindCollection has a handle that has seen everything but a collection bring content which
// that took: it is stored again.
func TestCommitsBehindCollection(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), nil)
	collector := handle(t, pool, "s")
	for name, contended := range map[string]int{"alone": 0, "locked": 2, "together": 0} {
		t.Run(name, func(t *testing.T) {
			e := handle(t, pool, "s")
			block := textBlock("said before " + name)
			_, err := e.Apply(background, &structure.Commit{Records: []structure.Record{block}}, backend.Options{})
			require.NoError(t, err)
			_, err = collector.Collect(background, all)
			require.NoError(t, err)
			batch := make([]*pending, 1)
			if name == "together" {
				batch = make([]*pending, 2)
			}
			for i := range batch {
				run := structure.NewID[structure.RunID]()
				batch[i] = &pending{ctx: background, full: true, done: make(chan struct{}), commit: &structure.Commit{Records: []structure.Record{
					block, &structure.Run{ID: run}, &structure.Span{Ref: structure.SpanRef{Run: run, Seq: 1}, Usages: []structure.Usage{{Kind: structure.MessageUsage, Role: "user", Content: block.ID}}},
				}}}
				batch[i].o.Durability = backend.Normal
			}
			e.writing.Lock()
			e.contended = contended
			e.writing.Unlock()
			require.Empty(t, e.commitAndWait(batch))
			for i, p := range batch {
				require.NoError(t, p.err)
				if i == 0 {
					require.Empty(t, p.receipt.Known)
				}
			}
			for _, reader := range []*Engine{e, collector, handle(t, pool, "s")} {
				blocks, err := reader.Blocks(background, []content.ID{block.ID})
				require.NoError(t, err)
				require.Equal(t, block.Body, blocks[0].Body)
				requireSound(t, reader)
			}
		})
	}
}

// cuttable returns connections that a cutter may cut.
func cuttable(t testing.TB, dsn string, c *cutter) *pgxpool.Pool {
	return newPool(t, dsn, func(config *pgxpool.Config) {
		config.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &wire{Conn: conn, cutter: c}, nil
		}
	})
}

// TestCutCollections cuts the connection before, within and after each message of a collection.
//
//test:norace
func TestCutCollections(t *testing.T) {
	campaign.Long(t)
	rewriteOneByOne(t)
	dsn := pgtest.DSN(t)
	c := &cutter{}
	e, witnesses := handle(t, cuttable(t, dsn, c), "s"), newPool(t, dsn, nil)
	other := handle(t, witnesses, "s")
	kept := tell(t, other, "kept", "shared")
	cut := 0
	for where := range cuts {
		for at := 1 + 2*int(where); ; at += step() {
			gone := tell(t, other, secret, "shared", fmt.Sprint(secret, where, at))
			require.NoError(t, gone.Delete(background))
			c.arm(at, where)
			report, err := e.Collect(background, all)
			reached := c.reached()
			c.arm(0, 0)
			require.NoError(t, err, "cut %d at message %d", where, at)
			require.NotZero(t, report.Records)
			require.Empty(t, rowsWith(t, witnesses, secret), "cut %d at message %d", where, at)
			require.Zero(t, unfinished(t, witnesses))
			requireSaid(t, other, kept, "kept", "shared")
			if !reached {
				break
			}
			cut++
		}
	}
	require.Greater(t, cut, 6)
	require.Equal(t, history(t, other), history(t, e))
	requireSound(t, other)
}

// step is the number of messages from one that is cut to the next.
func step() int {
	if campaign.Runs() {
		return 1
	}
	return 9
}

// rewriteOneByOne has each row rewritten by a statement of its own.
func rewriteOneByOne(t *testing.T) {
	former := mostRewritten
	mostRewritten = 1
	t.Cleanup(func() { mostRewritten = former })
}

// mortal is a connection of a process that is killed with a certain message.
type mortal struct {
	net.Conn
	life *life
}

// life ends with a message.
type life struct {
	cutter
	over chan struct{}
	once sync.Once
}

func (m *mortal) Write(b []byte) (int, error) {
	select {
	case <-m.life.over:
		m.Conn.Close()
		return 0, errCut
	default:
	}
	where, hit := m.life.hits()
	if !hit {
		return m.Conn.Write(b)
	}
	switch where {
	case before:
		b = nil
	case within:
		b = b[:len(b)/2]
	}
	_, _ = m.Conn.Write(b)
	m.life.once.Do(func() { close(m.life.over) })
	m.Conn.Close()
	return 0, errCut
}

// TestKilledCollections kills the collector at each message. The store is as before or after for everybody
// else, who write on, and the next collection ends what was begun.
func TestKilledCollections(t *testing.T) {
	campaign.Long(t)
	rewriteOneByOne(t)
	dsn := pgtest.DSN(t)
	pool := newPool(t, dsn, nil)
	other := handle(t, pool, "s")
	kept := tell(t, other, "kept", "shared")
	texts := []string{"kept", "shared"}
	ctx, cancel := context.WithCancel(background)
	var dying sync.WaitGroup
	defer dying.Wait()
	defer cancel()
	interrupted := 0
	for _, where := range []cut{before, within, after} {
		for at := 1 + 2*int(where); ; at += step() {
			taken := fmt.Sprint(secret, " erased ", where, at)
			main, err := kept.Active(background)
			require.NoError(t, err)
			_, err = main.Extend(background, lineage.User(taken))
			require.NoError(t, err)
			gone := tell(t, other, secret, "shared", fmt.Sprint(secret, where, at))
			require.NoError(t, gone.Delete(background))
			require.NoError(t, lineage.New(other).Erase(background, content.Sum([]byte(taken))))
			texts = append(texts, erased)

			l := &life{over: make(chan struct{})}
			victims := newPool(t, dsn, func(config *pgxpool.Config) {
				config.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
					select {
					case <-l.over:
						return nil, errCut
					default:
					}
					conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
					if err != nil {
						return nil, err
					}
					return &mortal{conn, l}, nil
				}
			})
			victim, err := New(background, victims, Options{Store: "s", Unsafe: true})
			require.NoError(t, err)
			l.arm(at, where)
			ended := make(chan struct{})
			dying.Go(func() { // a dead process does nothing, but this one tries until the test ends
				_, _ = victim.Collect(ctx, all)
				close(ended)
				_ = victim.Close()
			})
			select {
			case <-l.over:
			case <-ended:
			}
			if unfinished(t, pool) > 0 {
				interrupted++
				for c, err := range handle(t, pool, "s").Feed(background, backend.Cursor{}) {
					require.NoError(t, err)
					require.NotContains(t, described(c), secret, "what is decided holds for everybody")
				}
			}
			requireSaid(t, other, kept, texts...)
			thread := tell(t, other, "shared", "on")
			requireSaid(t, handle(t, pool, "s"), thread, "shared", "on")
			requireSound(t, other)
			_, err = other.Collect(background, all)
			require.NoError(t, err)
			require.Empty(t, rowsWith(t, pool, secret), "killed %d at message %d", where, at)
			require.Zero(t, unfinished(t, pool))
			requireSaid(t, other, kept, texts...)
			requireSaid(t, handle(t, pool, "s"), thread, "shared", "on")
			select {
			case <-l.over:
				continue
			default:
			}
			break
		}
	}
	require.Greater(t, interrupted, 1)
	requireSound(t, other)
}

// TestCollectUnderReaders has a follower, a waiter, a snapshot and a sequence of another handle meet a
// collection.
func TestCollectUnderReaders(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), nil)
	collector, e := handle(t, pool, "s"), handle(t, pool, "s")
	kept := tell(t, collector, "one", "two", "three")
	gone := tell(t, collector, secret, "four")
	position, err := e.Head(background)
	require.NoError(t, err)
	require.NoError(t, gone.Delete(background))
	snapshot, err := e.Snapshot(background)
	require.NoError(t, err)
	defer snapshot.Close()
	next, stop := iter.Pull2(e.Feed(background, backend.Cursor{}))
	defer stop()
	var numbers []uint64
	follow := func() bool {
		c, err, more := next()
		if !more {
			return false
		}
		require.NoError(t, err)
		numbers = append(numbers, c.Number)
		return true
	}
	require.True(t, follow())
	main, err := kept.Active(background)
	require.NoError(t, err)
	tip, err := main.Tip(background)
	require.NoError(t, err)
	step, stopPath := iter.Pull2(e.Path(background, tip, structure.Window{}, backend.PathOptions{Bodies: true}))
	defer stopPath()
	steps := 0
	read := func() bool {
		s, err, more := step()
		if more {
			require.NoError(t, err)
			steps++
			require.EqualValues(t, steps, s.Position)
		}
		return more
	}
	require.True(t, read())
	head, err := e.Head(background)
	require.NoError(t, err)
	waited := make(chan error, 1)
	go func() {
		at, err := e.Wait(background, head)
		if err == nil && at.Number <= head.Number {
			err = fmt.Errorf("woken at %d, after %d", at.Number, head.Number)
		}
		waited <- err
	}()

	_, err = collector.Collect(background, all)
	require.NoError(t, err)
	requireSaid(t, e, kept, "one", "two", "three")
	_, err = snapshot.Thread(background, kept.ID())
	require.ErrorIs(t, err, backend.ErrExpired)
	for read() {
	}
	require.Equal(t, 3, steps)
	for follow() {
	}
	require.Len(t, numbers, int(head.Number))
	for i, n := range numbers {
		require.EqualValues(t, i+1, n)
	}
	after := position.Number
	for c, err := range e.Feed(background, position) { // from before the collection
		require.NoError(t, err)
		after++
		require.Equal(t, after, c.Number)
		require.NotContains(t, described(c), secret)
	}
	require.Equal(t, head.Number, after)
	createThread(t, collector, backend.Full)
	require.NoError(t, <-waited)
}

// TestCollectRights refuses roles that may only use stores, before anything is done, and needs no
// more than the manual says.
func TestCollectRights(t *testing.T) {
	dsn := pgtest.DSN(t)
	admin := newPool(t, dsn, nil)
	for _, store := range []string{"ada", "bob"} {
		gone := tell(t, handle(t, admin, store), secret)
		require.NoError(t, gone.Delete(background))
	}
	left := len(rowsWith(t, admin, secret)) / 2
	require.NotZero(t, left)
	role := roles(t, admin, "tenant_ada", "tenant_bob")
	grant := func(sql string) {
		_, err := admin.Exec(background, role.Replace(sql), pgx.QueryExecModeSimpleProtocol)
		require.NoError(t, err)
	}
	grant(manual(t, "Tenants"))
	ada := handle(t, as(t, dsn, role.Replace("tenant_ada")), "ada")
	dry := all
	dry.DryRun = true
	would, err := ada.Collect(background, dry)
	require.NoError(t, err)
	require.NotZero(t, would.Records)
	_, err = ada.Collect(background, all)
	require.ErrorIs(t, err, sqladapter.ErrDenied)
	require.ErrorContains(t, err, "docs/postgres.md")
	require.Zero(t, ada.head.epoch)
	require.Zero(t, unfinished(t, admin))

	grant(strings.ReplaceAll(manual(t, "Garbage collection"), "lineage_gc", "tenant_ada"))
	did, err := ada.Collect(background, all)
	require.NoError(t, err)
	require.Equal(t, would.Records, did.Records)
	require.Len(t, rowsWith(t, admin, secret), left, "what is in the store of another stays")
	requireSound(t, handle(t, admin, "ada"))
	for _, statement := range []string{`DELETE FROM lineage_log`, `UPDATE lineage_log SET id = 1`, `DELETE FROM lineage_store`} {
		_, err := ada.log.pool.Exec(background, statement, exec)
		require.Equal(t, insufficient, sqlState(err), statement)
	}
}

// TestRestoredBeforeCollection puts a backup in place of a collected log, and collects that with other
// options: processes that knew the first collection have what the second left.
func TestRestoredBeforeCollection(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), nil)
	e, other := handle(t, pool, "s"), handle(t, pool, "s")
	do := func(statements ...string) {
		for _, s := range statements {
			_, err := pool.Exec(background, s, exec)
			require.NoError(t, err)
		}
	}
	gone := tell(t, e, secret)
	require.NoError(t, gone.Delete(background))
	block := textBlock("not used yet")
	_, err := e.Apply(background, &structure.Commit{Records: []structure.Record{block}}, backend.Options{})
	require.NoError(t, err)
	tables := []string{"lineage_log", "lineage_store", "lineage_entry", "lineage_head", "lineage_former"}
	for _, table := range tables {
		do(`CREATE TABLE backup_` + table + ` AS TABLE ` + table)
	}
	_, err = e.Collect(background, all)
	require.NoError(t, err)
	_, err = e.Blocks(background, []content.ID{block.ID})
	require.ErrorIs(t, err, backend.ErrNotFound)
	for _, table := range tables {
		do(`DELETE FROM `+table, `INSERT INTO `+table+` TABLE backup_`+table)
	}
	_, err = other.Collect(background, backend.CollectOptions{})
	require.NoError(t, err)
	_, err = e.Blocks(background, []content.ID{block.ID})
	require.NoError(t, err)
	require.Equal(t, history(t, other), history(t, e))
}

// TestMigrateToEpochs brings tables of version 1 up to date.
func TestMigrateToEpochs(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), nil)
	former := migrations
	migrations = migrations[:1]
	l := &log{pool: pool, store: keyOf("s")}
	err := l.migrateOnce(background)
	migrations = former
	require.NoError(t, err)
	require.NoError(t, l.register(background, "s", [16]byte{}))
	is, err := l.look(background)
	require.NoError(t, err)
	require.Equal(t, 1, is.version)
	e := handle(t, pool, "s")
	id := e.StoreID()
	require.Equal(t, is.identity, id[:])
	require.NoError(t, tell(t, e, secret).Delete(background))
	_, err = e.Collect(background, all)
	require.NoError(t, err)
	require.Empty(t, rowsWith(t, pool, secret))
}

// A collection needs no more than two connections, as everything else.
func TestCollectWithTwoConnections(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), func(c *pgxpool.Config) { c.MaxConns = 2 })
	e := handle(t, pool, "s")
	kept := tell(t, e, "kept")
	require.NoError(t, tell(t, e, secret).Delete(background))
	report, err := e.Collect(background, all)
	require.NoError(t, err)
	require.NotZero(t, report.Records)
	require.Empty(t, rowsWith(t, pool, secret))
	requireSaid(t, e, kept, "kept")
	requireSound(t, e)
}

// TestCollectTooLarge collects a store whose list of what is in use does not fit into a row: nothing changes, nobody is
// kept waiting, and the error names the sizes.
func TestCollectTooLarge(t *testing.T) {
	former := maxLive
	t.Cleanup(func() { maxLive = former })
	pool := newPool(t, pgtest.DSN(t), nil)
	e, other := handle(t, pool, "s"), handle(t, pool, "s")
	kept := tell(t, e, "kept")
	require.NoError(t, tell(t, e, secret).Delete(background))
	before, stored := history(t, e), rowsWith(t, pool, secret)
	maxLive = 100
	_, err := e.Collect(background, all)
	require.ErrorIs(t, err, backend.ErrTooLarge)
	require.ErrorContains(t, err, "at most 100")
	require.Zero(t, pool.Stat().AcquiredConns())
	require.Zero(t, unfinished(t, pool))
	require.Equal(t, stored, rowsWith(t, pool, secret))
	require.Equal(t, before, history(t, other))
	createThread(t, other, backend.Full)
	maxLive = former
	_, err = e.Collect(background, all)
	require.NoError(t, err)
	require.Empty(t, rowsWith(t, pool, secret))
	requireSaid(t, other, kept, "kept")
}

// TestRecentBehindCollection builds a commit on what a handle had before another one collected: what it
// states of that is judged in the new epoch.
func TestRecentBehindCollection(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), nil)
	collector, e := handle(t, pool, "s"), handle(t, pool, "s")
	kept := tell(t, collector, "kept")
	gone := tell(t, collector, secret)
	main, err := gone.Active(background)
	require.NoError(t, err)
	require.NoError(t, e.Sync(background))
	mine, err := lineage.New(e).Thread(background, kept.ID())
	require.NoError(t, err)
	keptMain, err := mine.Active(background)
	require.NoError(t, err)
	goneMine, err := lineage.New(e).Context(background, main.ID())
	require.NoError(t, err)
	_, err = goneMine.Extend(background, lineage.User(secret))
	require.NoError(t, err)
	require.NoError(t, gone.Delete(background))
	_, err = collector.Collect(background, all)
	require.NoError(t, err)

	recent, err := e.Recent().Context(background, main.ID())
	require.NoError(t, err, "it has not looked at the store since")
	require.Equal(t, main.ID(), recent.ID)
	_, err = goneMine.Extend(background, lineage.User("behind what is gone"))
	require.ErrorIs(t, err, backend.ErrNotFound)
	_, err = e.Recent().Context(background, main.ID())
	require.ErrorIs(t, err, backend.ErrNotFound)
	_, err = keptMain.Extend(background, lineage.User("on"))
	require.NoError(t, err)
	requireSaid(t, collector, kept, "kept", "on")
	requireSound(t, collector)
}

// TestCollectEnds cancels a collection, and closes the handle under one.
func TestCollectEnds(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), nil)
	for name, want := range map[string]error{"cancelled": context.Canceled, "closed": backend.ErrClosed} {
		t.Run(name, func(t *testing.T) {
			e, other := handle(t, pool, name), handle(t, pool, name)
			require.NoError(t, tell(t, e, secret).Delete(background))
			ctx, cancel := context.WithCancel(background)
			defer cancel()
			o := all
			o.Progress = func(int64, int64) {
				if want == context.Canceled {
					cancel()
					return
				}
				go e.Close()
				<-e.ctx.Done()
			}
			_, err := e.Collect(ctx, o)
			require.ErrorIs(t, err, want)
			_, err = other.Collect(background, all)
			require.NoError(t, err)
			require.Empty(t, rowsWith(t, pool, secret))
		})
	}
	e := handle(t, pool, "s")
	require.NoError(t, e.Close())
	_, err := e.Collect(background, all)
	require.ErrorIs(t, err, backend.ErrClosed)
}

// TestCollectorThatSlept goes on with a collection that another process ended long ago, after which there was another one.
func TestCollectorThatSlept(t *testing.T) {
	former := mostDropped
	mostDropped = 7
	t.Cleanup(func() { mostDropped = former })
	pool := newPool(t, pgtest.DSN(t), nil)
	sleeper, e := handle(t, pool, "s"), handle(t, pool, "s")
	kept := tell(t, e, "kept")
	var epochs []uint64
	for range 2 {
		require.NoError(t, tell(t, e, secret).Delete(background))
		_, err := e.Collect(background, all)
		require.NoError(t, err)
		is, err := e.log.lastRow(background, 0)
		require.NoError(t, err)
		epochs = append(epochs, is.epoch)
	}
	var others int
	require.NoError(t, pool.QueryRow(background, `SELECT count(*) FROM lineage_entry WHERE epoch <> $1`, exec, int64(epochs[1])).Scan(&others))
	require.Zero(t, others)
	require.ErrorIs(t, sleeper.log.dropEpochs(background, epochs[0]), errCollected)
	require.ErrorIs(t, sleeper.log.dropEpoch(background, epochs[1], sleeper.log.undecided(epochs[1])), errBehind)
	requireSaid(t, e, kept, "kept")
	requireSound(t, e)
}

// TestReadWhileACollectionIsPending reads rows that have what a collection removed, before they are rewritten. Afterwards
// nothing of that is left in memory.
func TestReadWhileACollectionIsPending(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), nil)
	e, reader := handle(t, pool, "s"), handle(t, pool, "s")
	gone, kept := tell(t, e, "said twice"), tell(t, e, "said twice")
	main, err := kept.Active(background)
	require.NoError(t, err)
	tip, err := main.Tip(background)
	require.NoError(t, err)
	var id content.ID
	for step, err := range e.Path(background, tip, structure.Window{}, backend.PathOptions{}) {
		require.NoError(t, err)
		id = step.Span.Usages[0].Content
	}
	uses := func(engine *Engine) (n int) {
		for u, err := range engine.Where(background, id) {
			require.NoError(t, err)
			require.Equal(t, tip, u.Span)
			n++
		}
		return n
	}
	require.NoError(t, gone.Delete(background))
	require.NoError(t, (&collection{Engine: e, o: all}).decide(background))
	require.Equal(t, 1, unfinished(t, pool))
	for _, engine := range []*Engine{e, reader} {
		requireSaid(t, engine, kept, "said twice")
		require.Equal(t, 1, uses(engine))
	}
	_, err = e.Collect(background, all)
	require.NoError(t, err)
	require.Zero(t, unfinished(t, pool))
	for _, engine := range []*Engine{e, reader} {
		require.Equal(t, 1, uses(engine))
		requireSaid(t, engine, kept, "said twice")
	}
	mine, err := lineage.New(reader).Context(background, main.ID())
	require.NoError(t, err)
	_, err = mine.Extend(background, lineage.User("said twice"))
	require.NoError(t, err)
	requireSound(t, e)
}
