package postgres_test

import (
	"crypto/rand"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/postgres"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
)

// TestRights opens and uses a database as a user with only some of the required rights. A missing
// right is ErrDenied and named.
func TestRights(t *testing.T) {
	dsn := pgtest.DSN(t)
	admin, err := pgx.Connect(background, dsn)
	require.NoError(t, err)
	defer admin.Close(background)
	run := func(statement string) {
		_, err := admin.Exec(background, statement)
		require.NoError(t, err, statement)
	}
	role := "lineage_test_" + rand.Text()
	quoted := pgx.Identifier{role}.Sanitize()
	run(`CREATE ROLE ` + quoted)
	defer run(`DROP ROLE ` + quoted)
	defer run(`DROP OWNED BY ` + quoted)
	config, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	config.RuntimeParams["role"] = role
	pool := stdlib.OpenDB(*config)
	defer pool.Close()
	open := func() (*sqladapter.DB, error) { return postgres.New(background, pool, sqladapter.Options{}) }

	run(`REVOKE CREATE ON SCHEMA public FROM PUBLIC`)
	_, err = open()
	require.ErrorIs(t, err, sqladapter.ErrDenied)
	require.ErrorContains(t, err, "permission denied for schema public")

	owner, err := postgres.Open(background, dsn, sqladapter.Options{})
	require.NoError(t, err)
	defer owner.Close()
	_, err = sqlchat.On(owner).CreateChat(background, chat.Chat{ID: "c", UserID: "ada"})
	require.NoError(t, err)
	_, err = open()
	require.ErrorIs(t, err, sqladapter.ErrDenied)
	require.ErrorContains(t, err, "permission denied for table lineage_migrations")

	run(`GRANT SELECT ON lineage_migrations TO ` + quoted)
	db, err := open()
	require.NoError(t, err)
	defer db.Close()
	s := sqlchat.On(db)
	_, err = s.Chat(background, "c")
	require.ErrorIs(t, err, sqladapter.ErrDenied)
	require.ErrorContains(t, err, "permission denied for table chats")

	run(`GRANT SELECT ON ALL TABLES IN SCHEMA public TO ` + quoted)
	require.NoError(t, place{dsn: dsn}.Exec(background, foreign))
	found, err := s.Chat(background, "c")
	require.NoError(t, err)
	require.Equal(t, "ada", found.UserID)
	for range 2 {
		hits, err := sqlchat.SearchAll(background, db, "", "zebra", chat.SearchOptions{})
		require.NoError(t, err)
		require.Len(t, hits, 2, "what cannot be indexed is read")
	}
	// Another program indexes a chat that this one is about to read.
	learned := false
	busy, err := postgres.New(background, pool, sqladapter.Options{Trace: func(sql string) {
		if strings.Contains(sql, "@@") && !learned {
			learned = true
			_, err := sqlchat.SearchAll(background, owner, "", "zebra", chat.SearchOptions{})
			require.NoError(t, err)
		}
	}})
	require.NoError(t, err)
	hits, err := sqlchat.SearchAll(background, busy, "", "zebra", chat.SearchOptions{})
	require.NoError(t, err)
	require.True(t, learned)
	require.Len(t, hits, 2, "nothing is found twice")
	require.NoError(t, busy.Close())

	_, err = s.CreateChat(background, chat.Chat{ID: "d", UserID: "ada"})
	require.ErrorIs(t, err, sqladapter.ErrDenied)
	require.ErrorContains(t, err, "permission denied for table chats")
	require.NotErrorIs(t, err, sqladapter.ErrBusy)

	run(`GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO ` + quoted)
	_, err = s.CreateChat(background, chat.Chat{ID: "d", UserID: "ada"})
	require.NoError(t, err)
	readOnly := config.Copy()
	readOnly.RuntimeParams["default_transaction_read_only"] = "on"
	other := stdlib.OpenDB(*readOnly)
	defer other.Close()
	db2, err := postgres.New(background, other, sqladapter.Options{})
	require.NoError(t, err)
	defer db2.Close()
	_, err = sqlchat.On(db2).CreateChat(background, chat.Chat{ID: "e", UserID: "ada"})
	require.ErrorIs(t, err, sqladapter.ErrDenied)
	require.ErrorContains(t, err, "read-only transaction")
}

// foreign are rows of another program.
const foreign = `
INSERT INTO messages (id, "chatId", "parentId", name, data, "createdAt") VALUES ('m1', 'c', NULL, 'user', '"zebra"', 1), ('m2', 'c', 'm1', 'user', '"zebras"', 2);`

// TestLearningInBatches searches many chats of another program. They are indexed several per
// transaction.
func TestLearningInBatches(t *testing.T) {
	const chats = 500
	dsn := pgtest.DSN(t)
	b := newBreaker(t, dsn)
	db, err := b.open(t, dsn, sqladapter.Options{})
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, place{dsn: dsn}.Exec(background, `
INSERT INTO chats (id, "userId") SELECT 'c' || n, 'ada' FROM generate_series(1, 500) AS n;
INSERT INTO messages (id, "chatId", name, data, "createdAt") SELECT 'm' || n, 'c' || n, 'user', '"zebra"', 1 FROM generate_series(1, 500) AS n;`))
	b.arm(0, false)
	found, err := sqlchat.SearchAll(background, db, "", "zebra", chat.SearchOptions{Limit: 2 * chats})
	require.NoError(t, err)
	require.Len(t, found, chats)
	require.LessOrEqual(t, b.commits(), 5)
}

// A schema that does not exist is named as that.
func TestMissingSchema(t *testing.T) {
	dsn := pgtest.DSN(t)
	separator := "?"
	if strings.Contains(dsn, "?") {
		separator = "&"
	}
	_, err := postgres.Open(background, dsn+separator+"search_path=nowhere", sqladapter.Options{})
	require.ErrorIs(t, err, sqladapter.ErrNoSchema)
	_, err = postgres.Open(background, dsn+separator+"search_path=nowhere", sqladapter.Options{Schema: sqladapter.KeepTables})
	require.ErrorIs(t, err, sqladapter.ErrNoTables)
}
