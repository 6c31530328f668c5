package postgres

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// slow delays what is sent, as a network does.
type slow struct {
	net.Conn
	delay time.Duration
}

func (s slow) Write(b []byte) (int, error) {
	time.Sleep(s.delay)
	return s.Conn.Write(b)
}

// writer writes messages of 500 bytes into a run of its own.
type writer struct {
	e    *Engine
	run  structure.RunID
	seq  uint64
	text string
}

func newWriter(b *testing.B, e *Engine, name string) *writer {
	w := &writer{e: e, run: structure.NewID[structure.RunID](), text: name}
	_, err := e.Apply(background, &structure.Commit{Records: []structure.Record{&structure.Run{ID: w.run}}}, backend.Options{})
	require.NoError(b, err)
	return w
}

// message returns 500 bytes that nobody wrote before.
func (w *writer) message() []byte {
	w.seq++
	text := w.text + " "
	for len(text) < 500 {
		text += rand.Text()
	}
	return []byte(text[:500])
}

func (w *writer) write() error {
	block := textBlock(string(w.message()))
	_, err := w.e.Apply(background, &structure.Commit{Records: []structure.Record{
		block, &structure.Span{Ref: structure.SpanRef{Run: w.run, Seq: w.seq}, Usages: []structure.Usage{{Kind: structure.MessageUsage, Role: "user", Content: block.ID}}},
	}}, backend.Options{})
	return err
}

// BenchmarkWrite compares a message in a commit with one in a row of a table, both synced: for one
// writer, and for four handles with sixteen each. Set LINEAGE_TEST_POSTGRES to a server with
// fsync=on for figures that mean something.
func BenchmarkWrite(b *testing.B) {
	for _, delay := range []time.Duration{0, time.Millisecond} {
		for _, shape := range []struct{ handles, writers int }{{1, 1}, {1, 2}, {4, 16}} {
			name := fmt.Sprintf("delay=%v/%dx%d", delay, shape.handles, shape.writers)
			dsn := pgtest.DSN(b)
			pool := func(b *testing.B, prepare bool) *pgxpool.Pool {
				return newPool(b, dsn, func(c *pgxpool.Config) {
					if prepare {
						c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheStatement
					}
					c.MaxConns = int32(shape.writers + 1)
					c.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
						conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
						if delay > 0 && err == nil {
							return slow{conn, delay}, nil
						}
						return conn, err
					}
				})
			}
			wal := func(b *testing.B) (lsn int64) {
				require.NoError(b, pool(b, false).QueryRow(background, `SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint`, exec).Scan(&lsn))
				return lsn
			}
			run := func(b *testing.B, of func(handle, writer int) func() error) {
				var writers []func() error
				for h := range shape.handles {
					for w := range shape.writers {
						writers = append(writers, of(h, w))
					}
				}
				from := wal(b)
				b.ResetTimer()
				var left atomic.Int64
				left.Store(int64(b.N))
				var going sync.WaitGroup
				for _, write := range writers {
					going.Go(func() {
						for left.Add(-1) >= 0 {
							if err := write(); err != nil {
								b.Errorf("%v", err)
							}
						}
					})
				}
				going.Wait()
				b.StopTimer()
				b.ReportMetric(float64(wal(b)-from)/float64(b.N), "wal/op")
			}
			b.Run(name+"/row", func(b *testing.B) {
				pools := make([]*pgxpool.Pool, shape.handles)
				for i := range pools {
					pools[i] = pool(b, true)
				}
				_, err := pools[0].Exec(background, `CREATE TABLE IF NOT EXISTS messages (id bigserial PRIMARY KEY, writer int, text text)`)
				require.NoError(b, err)
				run(b, func(h, i int) func() error {
					w := &writer{text: fmt.Sprint(h, i)}
					return func() error {
						_, err := pools[h].Exec(background, `INSERT INTO messages (writer, text) VALUES ($1, $2)`, i, string(w.message()))
						return err
					}
				})
			})
			for kind, prepare := range map[string]bool{"commit": false, "commit prepared": true} {
				b.Run(name+"/"+kind, func(b *testing.B) {
					engines := make([]*Engine, shape.handles)
					for i := range engines {
						engines[i] = benchHandle(b, pool(b, prepare))
					}
					run(b, func(h, i int) func() error { return newWriter(b, engines[h], fmt.Sprint(h, i)).write })
				})
			}
		}
	}
}

func benchHandle(b *testing.B, pool *pgxpool.Pool) *Engine {
	e, err := New(background, pool, Options{Store: "s", Unsafe: true})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, e.Close()) })
	return e
}
