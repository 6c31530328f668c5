package bench

import (
	"context"
	"database/sql"
	"path/filepath"
	"strconv"
	"strings"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"github.com/lineage-store/lineage/internal/pgcluster"
	"github.com/lineage-store/lineage/sqladapter/postgres"
)

// startPostgres finds or starts the server to measure, if any, and returns a function that stops
// it.
func (r *run) startPostgres() (stop func()) {
	stop = func() {}
	switch {
	case r.config.Postgres == "":
		r.noPostgres = "no server was named"
	case !r.wantsSystem(namePostgres):
		r.noPostgres = "it is not among the systems that were named"
	case r.config.Postgres != PrivatePostgres:
		r.postgres = r.config.Postgres
	default:
		r.config.Progress("starting a Postgres server")
		c, err := pgcluster.Start(pgcluster.Options{Dir: r.config.Dir, Settings: []string{
			"max_connections=200", "shared_buffers=512MB", "max_wal_size=4GB", "checkpoint_timeout=15min",
		}})
		if err != nil {
			r.noPostgres = "no server could be started: " + err.Error()
			return stop
		}
		r.postgres = c.DSN("postgres")
		stop = func() { _ = c.Close() } // it is removed in any case
	}
	return stop
}

// postgresSystem is the documented schema on Postgres, in a separate schema. Its normal durability
// is asynchronous commit: it survives the end of the program, but if the server crashes, the last
// acknowledged changes may be lost.
func postgresSystem(address, durability string) system {
	most := 100_000
	if durability == full {
		most = 1_000 // syncs do not depend on the length, and building a long history takes a minute
	}
	return system{name: namePostgres, durability: durability, maxLength: most, tooLong: "building it takes minutes", elsewhere: true, open: func(ctx context.Context, dir string) (store, error) {
		made, err := newSchema(ctx, address, dir)
		if err != nil {
			return nil, err
		}
		s := &sqlStore{driver: "pgx", mark: func(n int) string { return "$" + strconv.Itoa(n) }, textRow: postgresText, schema: made, address: made.address}
		if durability == normal {
			s.address = withSetting(s.address, "synchronous_commit", "off")
		}
		s.bulk = postgresBulk
		return s, s.open(ctx, postgres.Dialect{}.Migrations()[0].Documented)
	}}
}

// schema is a schema of the run on a Postgres server. A killed run leaves it.
type schema struct{ name, address string }

func newSchema(ctx context.Context, server, dir string) (*schema, error) {
	// The run's directory has a unique name.
	name := strings.NewReplacer("-", "_", ".", "_").Replace("bench_" + filepath.Base(filepath.Dir(dir)) + "_" + filepath.Base(dir))
	s := &schema{name, withSetting(server, "search_path", name)}
	return s, s.exec(ctx, `CREATE SCHEMA "`+name+`"`)
}

// exec runs statements in the schema, each in a transaction of its own.
func (s *schema) exec(ctx context.Context, statements ...string) error {
	db, err := sql.Open("pgx", s.address)
	if err != nil {
		return err
	}
	defer db.Close()
	for _, statement := range statements {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// size returns the bytes that the tables of the schema take on the server.
func (s *schema) size() (n int64, err error) {
	err = s.value(&n, `SELECT COALESCE(SUM(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = $1 AND c.relkind = 'r'`, s.name)
	return n, err
}

// wal returns the bytes that the server has written to its write-ahead log.
func (s *schema) wal() (n int64, err error) {
	err = s.value(&n, `SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint`)
	return n, err
}

func (s *schema) value(to *int64, query string, args ...any) error {
	db, err := sql.Open("pgx", s.address)
	if err != nil {
		return err
	}
	defer db.Close()
	return db.QueryRow(query, args...).Scan(to)
}

func (s *schema) drop() error {
	return s.exec(context.Background(), `DROP SCHEMA "`+s.name+`" CASCADE`)
}

// postgresBulk inserts messages with one statement per table.
func postgresBulk(ctx context.Context, h *sqlHistory, messages [][]byte) error {
	var ids, parents, names, data, texts []string
	parent := ""
	if len(h.ids) > 0 {
		parent = h.ids[len(h.ids)-1]
	}
	for i, m := range messages {
		id, role := h.store.id("m"), roleOf(len(h.ids)+i)
		ids, parents, names = append(ids, id), append(parents, parent), append(names, role)
		data, texts = append(data, string(messageJSON(id, role, m))), append(texts, string(m))
		parent = id
	}
	tx, err := h.store.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it does nothing
	for _, s := range []struct {
		query string
		args  []any
	}{
		{`INSERT INTO messages (id, chatId, parentId, name, type, data, createdAt)
			SELECT id, $1, NULLIF(parent, ''), name, 'message', data::jsonb, $2
			FROM unnest($3::text[], $4::text[], $5::text[], $6::text[]) AS m(id, parent, name, data)`,
			[]any{h.chat, h.store.next.Load(), ids, parents, names, data}},
		{`INSERT INTO messages_fts (messageId, chatId, name, content)
			SELECT id, $1, name, content FROM unnest($2::text[], $3::text[], $4::text[]) AS m(id, name, content)`,
			[]any{h.chat, ids, names, texts}},
		{`UPDATE branches SET headMessageId = $1 WHERE id = $2`, []any{parent, h.branch}},
		{`UPDATE chats SET updatedAt = $1 WHERE id = $2`, []any{h.store.next.Load(), h.chat}},
	} {
		if _, err := tx.ExecContext(ctx, s.query, s.args...); err != nil {
			return err
		}
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	h.ids = append(h.ids, ids...)
	// The server would do this a minute later.
	_, err = h.store.db.ExecContext(ctx, "ANALYZE messages")
	return err
}

// withSetting adds a setting to a server's address.
func withSetting(address, name, value string) string {
	switch {
	case !strings.Contains(address, "://"):
		return address + " " + name + "=" + value
	case strings.Contains(address, "?"):
		return address + "&" + name + "=" + value
	}
	return address + "?" + name + "=" + value
}
