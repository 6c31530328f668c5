//test:long

package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	driver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/lineagetest"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/importing"
	"github.com/lineage-store/lineage/sqladapter/internal/statements"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
	"github.com/lineage-store/lineage/sqladapter/sqlite"
)

var background = context.Background()

// feature: storage/sqlite-settings
func TestSettings(t *testing.T) {
	db, err := sqlite.Open(background, filepath.Join(t.TempDir(), "chats.db"), sqladapter.Options{})
	require.NoError(t, err)
	defer db.Close()
	for pragma, want := range map[string]string{
		"journal_mode": "wal", "synchronous": "1", "cache_size": "-64000", "temp_store": "2", "mmap_size": "268435456", "foreign_keys": "1",
	} {
		check := func(c *sqladapter.Conn) error {
			var got string
			_, err := c.Get(background, sqladapter.Statement("PRAGMA "+pragma), nil, &got)
			require.Equal(t, want, got, pragma)
			return err
		}
		require.NoError(t, db.Write(background, check))
		require.NoError(t, db.Read(background, check))
	}
}

// TestStatements lets the database prepare every statement.
func TestStatements(t *testing.T) {
	path := filepath.Join(t.TempDir(), "chats.db")
	db, err := sqlite.Open(background, path, sqladapter.Options{})
	require.NoError(t, err)
	defer db.Close()
	raw, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer raw.Close()
	for _, script := range []string{"schema_projection.sql", "schema_lineage.sql"} {
		text, err := os.ReadFile(script)
		require.NoError(t, err)
		_, err = raw.Exec(string(text))
		require.NoError(t, err)
	}
	all, err := statements.Of()
	require.NoError(t, err)
	syntax := sqlite.Dialect{}.Syntax()
	for _, s := range all {
		if !s.IsFor(sqlite.Dialect{}) {
			continue
		}
		for _, n := range []int{1, 2} {
			text, err := syntax.Render(s.Text, n)
			require.NoError(t, err, s.Name)
			prepared, err := raw.Prepare(text)
			require.NoError(t, err, "%s: %s", s.Name, text)
			require.NoError(t, prepared.Close())
		}
	}
}

// TestKilled repeatedly kills a process that appends. Each time, every turn is stored completely or
// not at all, and the database is consistent.
func TestKilled(t *testing.T) {
	const worker = "LINEAGE_SQLITE_WORKER"
	if path := os.Getenv(worker); path != "" {
		appendForEver(path)
	}
	path := filepath.Join(t.TempDir(), "chats.db")
	db, err := sqlite.Open(background, path, sqladapter.Options{})
	require.NoError(t, err)
	_, err = sqlchat.On(db).CreateChat(background, chat.Chat{ID: "c", UserID: "ada"})
	require.NoError(t, err)
	require.NoError(t, db.Close())
	had := 0
	for round := range 4 {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestKilled$")
		cmd.Env = append(os.Environ(), worker+"="+path)
		require.NoError(t, cmd.Start())
		var n int
		for n = had; n < had+10; n = countTurns(t, path) {
			time.Sleep(time.Duration(3+round) * time.Millisecond)
		}
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait() // it was killed
		now := countTurns(t, path)
		require.GreaterOrEqual(t, now, n)
		had = now
	}
}

// countTurns returns the number of turns, of three messages each.
func countTurns(t *testing.T, path string) int {
	db, err := sqlite.Open(background, path, sqladapter.Options{})
	require.NoError(t, err)
	defer db.Close()
	s := sqlchat.On(db)
	// Later calls see what another process has written meanwhile.
	found, err := s.SearchMessages(background, "c", "turn", chat.SearchOptions{Limit: 1 << 20})
	require.NoError(t, err)
	infos, err := s.ListBranches(background, "c")
	require.NoError(t, err)
	n := 0
	for m, err := range s.Messages(background, "c") {
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(n), m.ID)
		n++
	}
	require.Zero(t, n%3)
	require.Zero(t, len(found)%3)
	require.Zero(t, infos[0].MessageCount%3)
	require.LessOrEqual(t, len(found), n)
	require.LessOrEqual(t, infos[0].MessageCount, n)
	g, err := s.Graph(background, "c")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(g.Nodes), n)
	return n / 3
}

func appendForEver(path string) {
	db, err := sqlite.Open(background, path, sqladapter.Options{})
	if err != nil {
		panic(err)
	}
	s := sqlchat.On(db)
	for {
		b, err := s.ActiveBranch(background, "c")
		if err != nil {
			panic(err)
		}
		n := 0
		for range s.Messages(background, "c") {
			n++
		}
		var messages []chat.Message
		for i := range 3 {
			messages = append(messages, chat.Message{ID: fmt.Sprint(n + i), Name: "user", Data: []byte(`{"parts":[{"type":"text","text":"a turn"}]}`)})
		}
		if _, err := s.Append(background, chat.AppendRequest{ChatID: "c", BranchID: b.ID, ExpectedHead: b.HeadMessageID, Messages: messages}); err != nil {
			panic(err)
		}
	}
}

// TestManyMessages reads a chat with many messages in as many statements as a small one, and
// deletes it in few statements per thousand messages, within the lowest parameter limit of all
// databases.
func TestManyMessages(t *testing.T) {
	t.Parallel()
	const count, parameters = 5_000, 2100 // messages are more than parameters
	path := filepath.ToSlash(filepath.Join(t.TempDir(), "chats.db"))
	pool, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_pragma=foreign_keys(1)")
	require.NoError(t, err)
	pool.SetMaxOpenConns(1) // the limit applies to this connection
	conn, err := pool.Conn(background)
	require.NoError(t, err)
	_, err = driver.Limit(conn, sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, parameters)
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	_, err = pool.Exec("SELECT ?"+strings.Repeat(",?", parameters), make([]any, parameters+1)...)
	require.ErrorContains(t, err, "too many SQL variables")

	statements := 0
	db, err := sqlchat.Open(background, sqladapter.Pools{Write: pool}, sqlite.Dialect{}, sqladapter.Options{Trace: func(string) { statements++ }})
	require.NoError(t, err)
	defer db.Close()
	s := sqlchat.On(db)
	_, err = s.CreateChat(background, chat.Chat{ID: "c", UserID: "ada"})
	require.NoError(t, err)
	b, err := s.ActiveBranch(background, "c")
	require.NoError(t, err)
	var messages []chat.Message
	for i := range count {
		messages = append(messages, chat.Message{ID: fmt.Sprint("m", i), Name: "user", Data: []byte(`"x"`)})
	}
	head, err := s.Append(background, chat.AppendRequest{ChatID: "c", BranchID: b.ID, Messages: messages})
	require.NoError(t, err)
	infos, err := s.ListBranches(background, "c")
	require.NoError(t, err)
	require.Equal(t, count, infos[0].MessageCount)
	statements = 0
	n, err := s.CountMessages(background, "c", string(head))
	require.NoError(t, err)
	require.Equal(t, count, n)
	require.Less(t, statements, 5)
	n = 0
	for range s.MessageChain(background, "c", string(head)) {
		n++
	}
	require.Equal(t, count, n)

	statements = 0
	deleted, err := s.DeleteChat(background, "c", chat.DeleteOptions{})
	require.NoError(t, err)
	require.True(t, deleted)
	require.Less(t, statements, 40+5*count/1000, "statements that delete a thousand messages each")
	require.NoError(t, db.Read(background, func(c *sqladapter.Conn) error {
		for _, table := range []string{"messages", "branches", "messages_fts", "lineage_messages"} {
			var left int
			_, err := c.Get(background, sqladapter.Statement(`SELECT COUNT(*) FROM "`+table+`"`), nil, &left)
			require.NoError(t, err)
			require.Zero(t, left, table)
		}
		return nil
	}))
}

// TestCounts lets other programs add, replace, move and delete messages, and compares the stored
// counts with the rows.
func TestCounts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "chats.db")
	db, err := sqlite.Open(background, path, sqladapter.Options{})
	require.NoError(t, err)
	defer db.Close()
	for _, id := range []string{"c", "d"} {
		_, err := sqlchat.On(db).CreateChat(background, chat.Chat{ID: id, UserID: "ada"})
		require.NoError(t, err)
		for i := range 5 {
			require.NoError(t, sqlchat.On(db).AddMessage(background, chat.Message{ID: fmt.Sprint(id, i), ChatID: id, Name: "user", Data: []byte(`"a word"`)}))
		}
	}
	insert := `INTO messages (id, chatId, name, data, createdAt) VALUES `
	found := func(chatID string) (ids []string) {
		results, err := sqlchat.On(db).SearchMessages(background, chatID, "word", chat.SearchOptions{})
		require.NoError(t, err)
		for _, r := range results {
			ids = append(ids, r.Message.ID)
		}
		return ids
	}
	for _, linked := range []string{"ON", "OFF"} {
		raw, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)&_pragma=foreign_keys("+linked+")")
		require.NoError(t, err)
		for _, script := range []string{
			`INSERT ` + insert + `('new` + linked + `', 'c', 'user', '"word"', 1)`,
			`INSERT OR REPLACE ` + insert + `('c1', 'c', 'user', '"other"', 1)`,
			`INSERT OR REPLACE ` + insert + `('c1', 'c', 'user', '"word"', 1)`,
			`INSERT ` + insert + `('c1', 'c', 'user', '"other"', 1) ON CONFLICT (id) DO UPDATE SET data = excluded.data`,
			`UPDATE messages SET chatId = 'd' WHERE id = 'c2'`,
			`UPDATE messages SET chatId = 'c', name = 'tool' WHERE id = 'c2'`,
			`DELETE FROM messages WHERE id = 'new` + linked + `'`,
			`DELETE FROM messages WHERE id LIKE '%3'; INSERT ` + insert + `('c3', 'c', 'user', '"word"', 1), ('d3', 'd', 'user', '"word"', 1)`,
		} {
			_, err := raw.Exec(script)
			require.NoError(t, err, script)
			for _, chatID := range []string{"c", "d"} {
				var want []string
				rows, err := raw.Query(`SELECT id FROM messages WHERE chatId = ? AND data LIKE '%word%'`, chatID)
				require.NoError(t, err)
				for rows.Next() {
					var id string
					require.NoError(t, rows.Scan(&id))
					want = append(want, id)
				}
				require.NoError(t, rows.Err())
				require.ElementsMatch(t, want, found(chatID), "%s, foreign keys %s", script, linked)
				var messages, known, counted, countedKnown int
				require.NoError(t, raw.QueryRow(`SELECT (SELECT COUNT(*) FROM messages WHERE chatId = c.chatId), `+
					`(SELECT COUNT(*) FROM lineage_messages WHERE chatId = c.chatId), messages, known FROM lineage_chats c WHERE chatId = ?`, chatID).
					Scan(&messages, &known, &counted, &countedKnown))
				require.Equal(t, messages, counted, script)
				require.Equal(t, known, countedKnown, script)
				require.Equal(t, messages, known, script)
			}
		}
		require.NoError(t, raw.Close())
	}
	for _, id := range []string{"c", "d"} {
		_, err := sqlchat.On(db).DeleteChat(background, id, chat.DeleteOptions{})
		require.NoError(t, err)
	}
	left := -1
	_, err = db.Reader().Get(background, `SELECT COUNT(*) FROM "lineage_chats"`, nil, &left)
	require.NoError(t, err)
	require.Zero(t, left)
}

// TestChainsReplaced lets a program without foreign keys replace, add and delete messages in chains
// of known length.
func TestChainsReplaced(t *testing.T) {
	insert := `INTO messages (id, chatId, parentId, name, data, createdAt) VALUES `
	for _, linked := range []string{"ON", "OFF"} {
		for script, want := range map[string]int{
			`INSERT OR REPLACE ` + insert + `('m2', 'c', NULL, 'user', '"x"', 1)`:                                                                        3,
			`UPDATE messages SET parentId = 'm1' WHERE id = 'm3'`:                                                                                        3,
			`UPDATE messages SET parentId = 'm3' WHERE id = 'm4'; UPDATE messages SET parentId = NULL WHERE id IN ('m2')`:                                3,
			`INSERT OR REPLACE ` + insert + `('m0', 'c', 'm2', 'user', '"x"', 1), ('m4', 'c', 'm0', 'user', '"x"', 1)`:                                   4,
			`PRAGMA foreign_keys = OFF; DELETE FROM messages WHERE id = 'm2'`:                                                                            2,
			`PRAGMA foreign_keys = OFF; UPDATE messages SET parentId = 'new' WHERE id = 'm1'`:                                                            4,
			`PRAGMA foreign_keys = OFF; UPDATE messages SET id = 'other' WHERE id = 'm3'`:                                                                1,
			`PRAGMA foreign_keys = OFF; UPDATE messages SET parentId = 'new' WHERE id = 'm1'; INSERT ` + insert + `('new', 'c', NULL, 'user', '"x"', 1)`: 5,
		} {
			path := filepath.Join(t.TempDir(), "chats.db")
			db, err := sqlite.Open(background, path, sqladapter.Options{})
			require.NoError(t, err)
			s := sqlchat.On(db)
			_, err = s.CreateChat(background, chat.Chat{ID: "c", UserID: "ada"})
			require.NoError(t, err)
			b, err := s.ActiveBranch(background, "c")
			require.NoError(t, err)
			var messages []chat.Message
			for i := range 4 {
				messages = append(messages, chat.Message{ID: fmt.Sprint("m", i+1), Name: "user", Data: []byte(`"x"`)})
			}
			_, err = s.Append(background, chat.AppendRequest{ChatID: "c", BranchID: b.ID, Messages: messages})
			require.NoError(t, err)
			raw, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)&_pragma=foreign_keys("+linked+")")
			require.NoError(t, err)
			raw.SetMaxOpenConns(1)
			for part := range strings.SplitSeq(script, "; ") {
				_, err = raw.Exec(part)
				require.NoError(t, err, part)
				infos, err := s.ListBranches(background, "c") // reads each state
				require.NoError(t, err)
				chain := 0
				for range s.MessageChain(background, "c", "m4") {
					chain++
				}
				require.Equal(t, chain, infos[0].MessageCount, part)
			}
			infos, err := s.ListBranches(background, "c")
			require.NoError(t, err)
			require.Equal(t, want, infos[0].MessageCount, script)
			require.NoError(t, raw.Close())
			require.NoError(t, db.Close())
		}
	}
}

// TestEarlierVersion opens a database with schema version 1.
func TestEarlierVersion(t *testing.T) {
	p := place(filepath.Join(t.TempDir(), "chats.db"))
	for _, name := range []string{"schema_documented.sql", "schema_1_chats.sql"} {
		script, err := os.ReadFile(name)
		require.NoError(t, err)
		require.NoError(t, p.Exec(background, string(script)))
	}
	require.NoError(t, p.Exec(background, `INSERT INTO lineage_migrations VALUES (1, 'chats', 0); INSERT INTO chats (id, userId) VALUES ('c', 'ada');
INSERT INTO messages (id, chatId, name, data, createdAt) VALUES ('m1', 'c', 'user', '"a zebra"', 1)`))
	db, err := p.Open(background)
	require.NoError(t, err)
	defer db.Close()
	found, err := sqlchat.On(db).SearchMessages(background, "c", "zebra", chat.SearchOptions{})
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.NoError(t, p.Exec(background, `UPDATE messages SET id = 'm2' WHERE id = 'm1'`))
	found, err = sqlchat.On(db).SearchMessages(background, "c", "zebra", chat.SearchOptions{})
	require.NoError(t, err)
	require.Equal(t, "m2", found[0].Message.ID)
}

// TestCycle distinguishes contradictory rows from a long chain.
//
// feature: state/circle
func TestCycle(t *testing.T) {
	p := place(filepath.Join(t.TempDir(), "chats.db"))
	db, err := p.Open(background)
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, p.Exec(background, `
INSERT INTO chats (id, userId) VALUES ('c', 'ada');
PRAGMA foreign_keys = OFF;
INSERT INTO messages (id, chatId, parentId, name, data, createdAt) VALUES ('a', 'c', 'b', 'user', '"a"', 1), ('b', 'c', 'a', 'user', '"b"', 1);
INSERT INTO branches (id, chatId, name, headMessageId, isActive, createdAt) VALUES ('m', 'c', 'main', 'a', 1, 1);`))
	s := sqlchat.On(db)
	var last error
	for _, err := range s.Messages(background, "c") {
		last = err
	}
	require.ErrorIs(t, last, sqladapter.ErrCorrupt)
	_, err = s.ListBranches(background, "c")
	require.ErrorIs(t, err, sqladapter.ErrCorrupt)
	_, err = s.Graph(background, "c")
	require.ErrorIs(t, err, sqladapter.ErrCorrupt)
}

// TestBusy fails while another process holds the lock, and succeeds when it is released.
func TestBusy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "chats.db")
	db, err := sqlite.Open(background, path, sqladapter.Options{Patience: 50 * time.Millisecond})
	require.NoError(t, err)
	defer db.Close()
	raw, err := sql.Open("sqlite", path+"?_txlock=immediate")
	require.NoError(t, err)
	defer raw.Close()
	tx, err := raw.Begin()
	require.NoError(t, err)
	_, err = sqlchat.On(db).CreateChat(background, chat.Chat{ID: "c", UserID: "ada"})
	require.ErrorIs(t, err, sqladapter.ErrBusy)
	c, err := sqlchat.On(db).Chat(background, "c")
	require.NoError(t, err, "reading goes on")
	require.Nil(t, c)
	require.NoError(t, tx.Rollback())
	_, err = sqlchat.On(db).CreateChat(background, chat.Chat{ID: "c", UserID: "ada"})
	require.NoError(t, err)
}

// TestSearchWhileLocked finds messages of another program while the database cannot be written.
func TestSearchWhileLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "chats.db")
	db, err := sqlite.Open(background, path, sqladapter.Options{Patience: 50 * time.Millisecond})
	require.NoError(t, err)
	defer db.Close()
	s := sqlchat.On(db)
	_, err = s.CreateChat(background, chat.Chat{ID: "c", UserID: "ada"})
	require.NoError(t, err)
	require.NoError(t, s.AddMessage(background, chat.Message{ID: "ours", ChatID: "c", Name: "user", Data: []byte(`"a zebra"`)}))
	require.NoError(t, place(path).Exec(background,
		`INSERT INTO messages (id, chatId, parentId, name, data, createdAt) VALUES ('theirs', 'c', 'ours', 'user', '"zebras, too"', 1)`))
	raw, err := sql.Open("sqlite", path+"?_txlock=immediate")
	require.NoError(t, err)
	defer raw.Close()
	tx, err := raw.Begin()
	require.NoError(t, err)
	for range 2 {
		found, err := s.SearchMessages(background, "c", "zebra", chat.SearchOptions{})
		require.NoError(t, err)
		require.Len(t, found, 2)
		if tx != nil {
			require.NoError(t, tx.Rollback())
			tx = nil
		}
	}
}

// TestNotADatabase does not change a file that is not a database.
func TestNotADatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notes.txt")
	text := []byte("This is a file of notes, and it is long enough to be looked at as a database, which it is not, not at all.")
	require.NoError(t, os.WriteFile(path, text, 0o600))
	_, err := sqlite.Open(background, path, sqladapter.Options{})
	require.ErrorContains(t, err, "notes.txt")
	_, err = sqlite.Open(background, "", sqladapter.Options{})
	require.ErrorIs(t, err, chat.ErrInvalid)
	left, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, text, left)
}

// TestFolders creates the folders of a file.
//
// feature: storage/first-use
func TestFolders(t *testing.T) {
	path := filepath.Join(t.TempDir(), "not there", "nor this", "chats.db")
	db, err := sqlite.Open(background, path, sqladapter.Options{})
	require.NoError(t, err)
	require.NoError(t, db.Close())
	require.FileExists(t, path)
	_, err = sqlite.Open(background, filepath.Join(path, "below a file", "chats.db"), sqladapter.Options{})
	require.ErrorContains(t, err, path)
}

// TestReadOnlyFile reports that a database cannot be written, and continues to read it.
func TestReadOnlyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "chats.db")
	db, err := sqlite.Open(background, path, sqladapter.Options{})
	require.NoError(t, err)
	_, err = sqlchat.On(db).CreateChat(background, chat.Chat{ID: "c", UserID: "ada"})
	require.NoError(t, err)
	defer db.Close()
	pool, err := sql.Open("sqlite", "file:"+filepath.ToSlash(path)+"?mode=ro")
	require.NoError(t, err)
	defer pool.Close()
	readOnly, err := sqlite.New(background, pool, sqladapter.Options{})
	require.NoError(t, err)
	defer readOnly.Close()
	_, err = sqlchat.On(readOnly).CreateChat(background, chat.Chat{ID: "d", UserID: "ada"})
	require.ErrorIs(t, err, sqladapter.ErrDenied)
	found, err := sqlchat.On(readOnly).Chat(background, "c")
	require.NoError(t, err)
	require.NotNil(t, found)
}

// TestQueryOfNoText asks for a text that is not UTF-8: no row matches, and nothing fails.
func TestQueryOfNoText(t *testing.T) {
	db, err := sqlite.Open(background, sqlite.Memory, sqladapter.Options{})
	require.NoError(t, err)
	defer db.Close()
	rows, err := db.Reader().Query(background, `SELECT "id" FROM "chats" WHERE "id" = ?`, "\xff")
	require.NoError(t, err)
	require.False(t, rows.Next())
	require.NoError(t, rows.Err())
	require.NoError(t, rows.Close())
}

// A chat of another program whose id is longer than a store allows is reported, and the others are imported.
func TestImportLongID(t *testing.T) {
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "chats.db"), sqladapter.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	for _, id := range []string{"a", strings.Repeat("x", chat.MaxID+1), "z"} {
		require.NoError(t, db.Write(t.Context(), func(c *sqladapter.Conn) error {
			_, err := c.Querier().ExecContext(t.Context(), `INSERT INTO chats (id, userId, createdAt, updatedAt) VALUES (?, 'ada', 1, 1)`, id)
			return err
		}))
	}
	store := lineagetest.New(t, lineage.Options{})
	problems := make(map[string]error)
	_, err = importing.Run(t.Context(), db, store, importing.Options{Problem: func(id string, err error) { problems[id] = err }})
	require.NoError(t, err)
	for _, id := range []string{"a", "z"} {
		_, err := store.FindThread(t.Context(), id)
		require.NoError(t, err)
	}
	require.Len(t, problems, 1)
	for _, err := range problems {
		require.ErrorIs(t, err, chat.ErrInvalid)
		require.ErrorContains(t, err, "at most 4096")
	}
}
