package pgtest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lineage-store/lineage/internal/pgcluster"
)

// Variable names the environment variable with the server to use.
const Variable = "LINEAGE_TEST_POSTGRES"

const patience = 5 * time.Minute

// server is the one of this process: a process can have but one that it must not
// outlive.
var server = sync.OnceValues(start)

// testServer is a server, by the connection string of its maintenance
// database.
type testServer struct {
	admin string
	// own is the server of this process, if it is one: it must not be collected while
	// the process lives.
	own *pgcluster.Cluster
}

func start() (testServer, error) {
	if dsn := os.Getenv(Variable); dsn != "" {
		return testServer{admin: dsn}, nil
	}
	c, err := pgcluster.Start(pgcluster.Options{Settings: settings()})
	if err != nil {
		return testServer{}, err
	}
	return testServer{admin: c.DSN("postgres"), own: c}, nil
}

// settings make the server quick: what is in it need not survive anything.
func settings() []string {
	return []string{
		"fsync=off", "full_page_writes=off", "synchronous_commit=off", "max_connections=200", "shared_buffers=64MB",
		"max_wal_size=512MB", "autovacuum=off",
	}
}

// pooler starts a pooler before the server of this process.
var pooler = sync.OnceValue(func() error {
	from, err := server()
	if err != nil {
		return err
	}
	if from.own == nil {
		return errors.New("the server that " + Variable + " names has no pooler of the tests' own")
	}
	return from.own.StartPooler()
})

// Pooled returns a function that makes connection strings of databases, as DSN does: the one that
// leads through PgBouncer in transaction mode, and the one of the server itself.
func Pooled(t testing.TB) func(t testing.TB) (pooled, direct string) {
	t.Helper()
	if err := pooler(); err != nil {
		unavailable(t, err)
	}
	return func(t testing.TB) (pooled, direct string) {
		from, _ := server()
		direct = DSN(t)
		u, err := url.Parse(direct)
		if err != nil {
			t.Fatalf("pgtest: %v", err)
		}
		return from.own.PooledDSN(strings.TrimPrefix(u.Path, "/")), direct
	}
}

// DSN returns the connection string of an empty database that is the test's own
// until its end.
func DSN(t testing.TB) string {
	t.Helper()
	return Encoded(t, "UTF8")
}

// Encoded is DSN for a database with another encoding.
func Encoded(t testing.TB, encoding string) string {
	t.Helper()
	from, err := server()
	if err != nil {
		unavailable(t, err)
	}
	admin := from.admin
	name, err := createDatabase(admin, encoding)
	if err != nil {
		t.Fatalf("pgtest: create a database: %v", err)
	}
	t.Cleanup(func() {
		if err := dropDatabase(admin, name); err != nil {
			t.Errorf("pgtest: drop database %s: %v", name, err)
		}
	})
	dsn, err := withDatabase(admin, name)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	return dsn
}

func unavailable(t testing.TB, err error) {
	t.Helper()
	const advice = "install PostgreSQL and PgBouncer (scripts/postgres.sh does on Debian), or set " + Variable
	if os.Getenv("CI") == "true" {
		t.Fatalf("pgtest: NO POSTGRES, AND CI MUST HAVE ONE: %v; %s", err, advice)
	}
	t.Skipf("pgtest: NOT TESTED AGAINST POSTGRES: %v; %s", err, advice)
}

// kept is a connection to the server of this process. A server takes longer to begin a connection than to create a database.
var kept struct {
	sync.Mutex
	conn *pgx.Conn
}

// onServer runs statements, one after another, outside of any transaction.
func onServer(admin string, statements ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	kept.Lock()
	defer kept.Unlock()
	if kept.conn == nil || kept.conn.Ping(ctx) != nil { // a test may have stopped the server
		conn, err := pgx.Connect(ctx, admin)
		if err != nil {
			return err
		}
		kept.conn = conn
	}
	for _, statement := range statements {
		if _, err := kept.conn.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

func createDatabase(admin, encoding string) (string, error) {
	var random [8]byte
	if _, err := rand.Read(random[:]); err != nil {
		return "", err
	}
	name := "lineage_test_" + hex.EncodeToString(random[:])
	locale := ""
	if encoding != "UTF8" {
		locale = " LOCALE 'C'" // it has every encoding
	}
	return name, onServer(admin, "CREATE DATABASE "+name+" ENCODING '"+encoding+"'"+locale+" TEMPLATE template0")
}

func dropDatabase(admin, name string) error {
	for begun := time.Now(); ; { // the server waits for five seconds for connections to end, and a pooler may begin one meanwhile
		err := onServer(admin,
			"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '"+name+"'",
			"DROP DATABASE IF EXISTS "+name)
		var refused *pgconn.PgError
		if !errors.As(err, &refused) || refused.Code != "55006" || time.Since(begun) > patience { // object_in_use
			return err
		}
	}
}

// withDatabase returns a connection string with another database in it.
func withDatabase(dsn, name string) (string, error) {
	if !strings.HasPrefix(dsn, "postgres://") && !strings.HasPrefix(dsn, "postgresql://") {
		return dsn + " dbname=" + name, nil // the last of a key counts
	}
	u, err := url.Parse(dsn)
	if err != nil {
		return "", fmt.Errorf("parse %s: %w", Variable, err)
	}
	u.Path = "/" + name
	query := u.Query()
	query.Del("dbname")
	query.Del("database")
	u.RawQuery = query.Encode()
	return u.String(), nil
}

// Server is a server that can be stopped, and have a standby.
type Server = pgcluster.Cluster

// Own returns a server that is the test's own until its end.
func Own(t testing.TB, further ...string) *Server {
	t.Helper()
	c, err := pgcluster.Start(pgcluster.Options{Settings: append(settings(), further...)})
	if err != nil {
		unavailable(t, err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("pgtest: %v", err)
		}
	})
	return c
}
