package postgres_test

import (
	"database/sql"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/internal/deepagents"
	"github.com/lineage-store/lineage/sqladapter/postgres"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
)

// withPath returns a DSN with a schema as the search path.
func withPath(dsn, schema string) string {
	separator := " "
	if strings.Contains(dsn, "://") {
		separator = map[bool]string{true: "&", false: "?"}[strings.Contains(dsn, "?")]
	}
	return dsn + separator + "search_path=" + schema
}

func opened(t *testing.T, dsn string) *sqladapter.DB {
	db, err := postgres.Open(background, dsn, sqladapter.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func connected(t *testing.T, dsn string) *sql.Conn {
	pool, err := sql.Open("pgx", dsn)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, pool.Close()) })
	conn, err := pool.Conn(background)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	return conn
}

func do(t *testing.T, c *sql.Conn, script string) {
	t.Helper()
	_, err := c.ExecContext(background, script)
	require.NoError(t, err, script)
}

func say(t *testing.T, db *sqladapter.DB, id, text string) {
	_, err := sqlchat.On(db).UpsertChat(background, chat.Chat{ID: "c", UserID: "ada"})
	require.NoError(t, err)
	b, err := sqlchat.On(db).ActiveBranch(background, "c")
	require.NoError(t, err)
	_, err = sqlchat.On(db).Append(background, chat.AppendRequest{ChatID: "c", BranchID: b.ID, ExpectedHead: b.HeadMessageID, Messages: []chat.Message{
		{ID: id, Name: "user", Type: chat.TypeMessage, Data: []byte(`{"id":"` + id + `","role":"user","parts":[{"type":"text","text":"` + text + `"}]}`)},
	}})
	require.NoError(t, err)
}

func hits(t *testing.T, db *sqladapter.DB, query string) []string {
	found, err := sqlchat.On(db).SearchMessages(background, "c", query, chat.SearchOptions{})
	require.NoError(t, err)
	ids := []string{}
	for _, f := range found {
		ids = append(ids, f.Message.ID)
	}
	return ids
}

// TestOtherPrograms has the tables in two schemas and changes them from programs with another
// search path, or with rights on the documented tables only.
func TestOtherPrograms(t *testing.T) {
	dsn := pgtest.DSN(t)
	admin := connected(t, dsn)
	do(t, admin, `CREATE SCHEMA app; CREATE SCHEMA other`)
	app, other := opened(t, withPath(dsn, "app")), opened(t, withPath(dsn, "other"))
	for _, db := range []*sqladapter.DB{app, other} {
		say(t, db, "m1", "a zebra")
		say(t, db, "m2", "an ibex")
		require.Equal(t, []string{"m1"}, hits(t, db, "zebra"))
	}

	// Other search paths, with our tables and functions in none, one or both.
	for i, path := range []string{"public", "other", "other, app", "pg_temp"} {
		do(t, admin, `SET search_path = `+path)
		do(t, admin, fmt.Sprintf(`UPDATE app.messages SET data = '"okapi%d"', parentId = NULL WHERE id = 'm1'`, i))
		require.Equal(t, []string{"m1"}, hits(t, app, fmt.Sprint("okapi", i)))
		require.Empty(t, hits(t, app, "zebra"))
		require.Equal(t, []string{"m1"}, hits(t, other, "zebra"))
	}

	// A role with rights on the documented tables only.
	var role string
	require.NoError(t, admin.QueryRowContext(background, `SELECT 'lineage_' || md5(current_database())`).Scan(&role))
	do(t, admin, fmt.Sprintf(`CREATE ROLE %[1]s; GRANT USAGE ON SCHEMA app TO %[1]s;
GRANT SELECT, INSERT, UPDATE, DELETE ON app.chats, app.messages, app.branches, app.checkpoints, app.messages_fts TO %[1]s`, role))
	t.Cleanup(func() { do(t, admin, fmt.Sprintf(`RESET ROLE; DROP OWNED BY %[1]s; DROP ROLE %[1]s`, role)) })
	do(t, admin, `SET search_path = public; SET ROLE `+role)
	do(t, admin, `UPDATE app.messages SET data = '"quagga"' WHERE id = 'm1'`)
	require.Equal(t, []string{"m1"}, hits(t, app, "quagga"))
	do(t, admin, `INSERT INTO app.messages (id, chatId, parentId, name, type, data, createdAt) VALUES ('m3', 'c', 'm2', 'user', 'message', '"quagga"', 1);
UPDATE app.messages SET parentId = NULL WHERE id = 'm2'; UPDATE app.messages SET parentId = 'm3' WHERE id = 'm1'; UPDATE app.branches SET headMessageId = 'm1'`)
	require.ElementsMatch(t, []string{"m1", "m3"}, hits(t, app, "quagga"))
	infos, err := sqlchat.On(app).ListBranches(background, "c")
	require.NoError(t, err)
	require.Equal(t, 3, infos[0].MessageCount)
	do(t, admin, `DELETE FROM app.messages_fts WHERE messageId = 'm1'; UPDATE app.branches SET headMessageId = NULL; UPDATE app.messages SET id = 'm0' WHERE id = 'm1'`)
	require.ElementsMatch(t, []string{"m0", "m3"}, hits(t, app, "quagga"))
	do(t, admin, `DELETE FROM app.chats`)
	require.Empty(t, hits(t, app, "quagga"))
	do(t, admin, `RESET ROLE`)
	left := -1
	require.NoError(t, admin.QueryRowContext(background, `SELECT COUNT(*) FROM app.lineage_messages`).Scan(&left))
	require.Zero(t, left, "what was known goes with the messages")
	require.Equal(t, []string{"m2"}, hits(t, other, "ibex"))
}

// TestDocumentedScript runs the documented script, with unquoted names, on a database created by
// this package, and queries it like the TypeScript package.
//
// feature: storage/schema
// feature: storage/script
func TestDocumentedScript(t *testing.T) {
	dsn := pgtest.DSN(t)
	db := opened(t, dsn)
	say(t, db, "m1", "one")
	say(t, db, "m2", "two")
	objects := func(c *sql.Conn) (n int) {
		require.NoError(t, c.QueryRowContext(background, `SELECT (SELECT COUNT(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace) + `+
			`(SELECT COUNT(*) FROM pg_proc WHERE pronamespace = 'public'::regnamespace) + (SELECT COUNT(*) FROM pg_trigger WHERE NOT tgisinternal)`).Scan(&n))
		return n
	}
	raw := connected(t, dsn)
	before := objects(raw)
	script, err := os.ReadFile("schema_documented.sql")
	require.NoError(t, err)
	unquoted := quotedName.ReplaceAllString(string(script), "$1")
	require.NotContains(t, unquoted, `"chatId"`)
	for range 2 {
		do(t, raw, unquoted)
	}
	require.Equal(t, before, objects(raw), "it made nothing")
	length := 0
	require.NoError(t, raw.QueryRowContext(background, `WITH RECURSIVE chain AS (
  SELECT *, 0 AS depth FROM messages WHERE id = 'm2'
  UNION ALL SELECT m.*, c.depth + 1 FROM messages m INNER JOIN chain c ON m.id = c.parentId WHERE c.depth < 10000
) SELECT COUNT(*) FROM chain`).Scan(&length))
	require.Equal(t, 2, length)
	say(t, db, "m3", "three")
	found := 0
	require.NoError(t, raw.QueryRowContext(background, `SELECT COUNT(*) FROM messages_fts WHERE content_vector @@ to_tsquery('english', 'three')`).Scan(&found))
	require.Equal(t, 1, found)
}

// TestEarlierVersion opens databases with schema version 1, with quoted and unquoted names.
func TestEarlierVersion(t *testing.T) {
	for _, quoted := range []bool{true, false} {
		p := place{pgtest.DSN(t), quoted}
		for _, name := range []string{"schema_documented.sql", "schema_1_chats.sql"} {
			script, err := os.ReadFile(name)
			require.NoError(t, err)
			require.NoError(t, p.Exec(background, string(script)))
		}
		require.NoError(t, p.Exec(background, `INSERT INTO lineage_migrations VALUES (1, 'chats', 0);
INSERT INTO chats (id, "userId") VALUES ('c', 'ada');
INSERT INTO messages (id, "chatId", name, data, "createdAt") VALUES ('m1', 'c', 'user', '"a zebra"', 1);
INSERT INTO branches (id, "chatId", name, "headMessageId", "isActive", "createdAt") VALUES ('b', 'c', 'main', 'm1', TRUE, 1);
INSERT INTO lineage_messages VALUES ('m1', 'c', 1, '', '')`))
		db := opened(t, p.dsn)
		require.Equal(t, []string{"m1"}, hits(t, db, "zebra"))
		say(t, db, "m2", "an okapi")
		require.NoError(t, p.Exec(background, `UPDATE messages SET data = '"an ibex"' WHERE id = 'm2'`))
		require.Equal(t, []string{"m2"}, hits(t, db, "ibex"))
		var triggers string
		require.NoError(t, connected(t, p.dsn).QueryRowContext(background, `SELECT string_agg(tgname, ' ' ORDER BY tgname) FROM pg_trigger WHERE tgname LIKE 'lineage%'`).Scan(&triggers))
		require.Equal(t, "lineage_chains_changed lineage_chains_removed", triggers, "those of version 1 are gone")
	}
}

// TestDeepAgents lets the TypeScript package open a database created here, in a separate schema,
// fill a known message and continue; and opens one of its databases.
func TestDeepAgents(t *testing.T) {
	dsn := pgtest.DSN(t)
	config, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	database := func(schema string) deepagents.Database {
		return deepagents.Database{Schema: schema, Pool: map[string]any{
			"host": config.Host, "port": config.Port, "user": config.User, "password": config.Password, "database": config.Database,
		}}
	}
	ts := deepagents.New(t, database("app"))
	do(t, connected(t, dsn), `CREATE SCHEMA app; CREATE SCHEMA theirs`)
	db := opened(t, withPath(dsn, "app"))
	say(t, db, "m1", "a zebra")
	require.Equal(t, []string{"m1"}, hits(t, db, "zebra"))
	var filled chat.Message
	ts.Do(t, &filled, "fill", "m1", "an okapi")
	require.Contains(t, string(filled.Data), "okapi")
	require.Empty(t, hits(t, db, "zebra"))
	require.Equal(t, []string{"m1"}, hits(t, db, "okapi"))
	var extended struct {
		Before []string `json:"before"`
		Head   string   `json:"head"`
	}
	ts.Do(t, &extended, "extend", "c", "ada", "and a quagga")
	require.Equal(t, []string{"m1"}, extended.Before)
	require.Equal(t, []string{extended.Head}, hits(t, db, "quagga"))
	say(t, db, "m2", "a last ibex")
	var found map[string][]string
	ts.Do(t, &found, "search", "c", "ibex")
	require.Equal(t, []string{"m2"}, found["ibex"])

	var written struct {
		Chains map[string][]chat.Message `json:"chains"`
	}
	ts.On(database("theirs")).Do(t, &written, "write", "birds")
	theirs := sqlchat.On(opened(t, withPath(dsn, "theirs")))
	for name, want := range written.Chains {
		b, err := theirs.Branch(background, "birds", name)
		require.NoError(t, err)
		var got []chat.Message
		for m, err := range theirs.MessageChain(background, "birds", string(b.HeadMessageID)) {
			require.NoError(t, err)
			got = append(got, m)
		}
		require.Len(t, got, len(want))
		for i := range want {
			require.True(t, got[i].Same(want[i]), "%+v %+v", got[i], want[i])
		}
	}
}

// Texts are those that other programs read and write, whatever the encoding of the database or the default of its clients is.
func TestEncodings(t *testing.T) {
	for _, c := range []struct{ encoding, clients, text string }{{"EUC_JP", "SJIS", "日本"}, {"LATIN1", "MULE_INTERNAL", "größe"}, {"UTF8", "LATIN1", "größe日本"}} {
		t.Run(c.encoding, func(t *testing.T) {
			dsn := pgtest.Encoded(t, c.encoding)
			admin := connected(t, dsn)
			do(t, admin, `SET client_encoding = UTF8`)
			do(t, admin, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET client_encoding = `+c.clients+`', current_database()); END $$`)
			db, another := opened(t, dsn), opened(t, dsn)
			say(t, db, "m", c.text)
			var text string
			require.NoError(t, admin.QueryRowContext(background, `SELECT data FROM messages`).Scan(&text))
			require.Contains(t, text, c.text)
			m, err := sqlchat.On(another).Message(background, "c", "m")
			require.NoError(t, err)
			require.Contains(t, string(m.Data), c.text)
			require.Equal(t, []string{"m"}, hits(t, another, c.text))
		})
	}
}
