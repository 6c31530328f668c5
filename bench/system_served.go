package bench

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/postgres"
)

// servedSystem is this store on a Postgres server, in a separate schema.
func servedSystem(server, durability string) system {
	return system{name: nameServed, durability: durability, elsewhere: true, open: func(ctx context.Context, dir string) (store, error) {
		made, err := newSchema(ctx, server, dir)
		if err != nil {
			return nil, err
		}
		s := &servedStore{at: serverPlace(made, 0), writers: 1, durability: durability, schema: made}
		return s, s.openAgain(ctx)
	}}
}

type servedStore struct {
	lineageStore
	at         string
	writers    int
	durability string
	schema     *schema // dropped at the end; nil if another process does that
	pool       *pgxpool.Pool
}

func (s *servedStore) openAgain(ctx context.Context) (err error) {
	if s.pool, err = serverPool(ctx, s.at, s.writers); err != nil {
		return err
	}
	o := postgres.Options{Store: "bench", Durability: lineage.Full, Unsafe: true} // the rows that it is compared with are as safe
	if s.durability == normal {
		o.Durability = lineage.Normal
	}
	engine, err := postgres.New(ctx, s.pool, o)
	if err != nil {
		s.pool.Close()
		return err
	}
	s.store = lineage.New(engine)
	return nil
}

func (s *servedStore) shut() error {
	defer s.pool.Close()
	return s.store.Close()
}

func (s *servedStore) close() error {
	err := s.shut()
	if s.schema != nil {
		err = errors.Join(err, s.schema.drop())
	}
	return err
}

func (s *servedStore) size() (int64, error) { return s.schema.size() }

// serverPlace names a schema on a server, and the delay of what is sent to it.
func serverPlace(in *schema, delay time.Duration) string { return delay.String() + " " + in.address }

// serverPool opens connections for writers, which prepare statements.
func serverPool(ctx context.Context, place string, writers int) (*pgxpool.Pool, error) {
	late, address, _ := strings.Cut(place, " ")
	delay, err := time.ParseDuration(late)
	if err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig(address)
	if err != nil {
		return nil, err
	}
	config.MaxConns = int32(writers + 1)
	dial := config.ConnConfig.DialFunc
	config.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err == nil && delay > 0 {
			conn = lateConn{conn, delay}
		}
		return conn, err
	}
	return pgxpool.NewWithConfig(ctx, config)
}

// lateConn delays what is sent, as a network does.
type lateConn struct {
	net.Conn
	delay time.Duration
}

func (c lateConn) Write(b []byte) (int, error) {
	time.Sleep(c.delay)
	return c.Conn.Write(b)
}

// rowsTable is what writers of rows insert into.
const rowsTable = `CREATE TABLE rows (id bigserial PRIMARY KEY, writer int, text text)`

// openRows opens a table for writers that insert a row for each message.
func (w processWork) openRows(ctx context.Context) (extends []func(context.Context, []byte) error, end func() error, err error) {
	pool, err := serverPool(ctx, w.place, w.writers)
	if err != nil {
		return nil, nil, err
	}
	for i := range w.writers {
		extends = append(extends, func(ctx context.Context, message []byte) error {
			_, err := pool.Exec(ctx, `INSERT INTO rows (writer, text) VALUES ($1, $2)`, i, string(message))
			return err
		})
	}
	return extends, func() error { pool.Close(); return nil }, nil
}
