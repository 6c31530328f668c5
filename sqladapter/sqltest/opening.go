package sqltest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
)

// together runs a function n times concurrently.
func together(t testing.TB, n int, fn func(i int) error) {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = fn(i) })
	}
	all.Wait()
	require.NoError(t, errors.Join(errs...))
}

// testOpeningTogether creates a database several times concurrently.
func testOpeningTogether(t *testing.T, c Config) {
	p := c.New(t)
	together(t, 8, func(i int) error {
		db, err := p.Open(background)
		if err != nil {
			return err
		}
		_, err = sqlchat.On(db).CreateChat(background, chat.Chat{ID: fmt.Sprint("c", i), UserID: "ada"})
		return errors.Join(err, db.Close())
	})
	n := 0
	for _, err := range sqlchat.On(open(t, p)).ListChats(background, chat.ListOptions{}) {
		require.NoError(t, err)
		n++
	}
	require.Equal(t, 8, n)
}

// testTwoProcesses appends through handles that share nothing, like processes.
func testTwoProcesses(t *testing.T, c Config) {
	const handles, turns = 3, 15
	p := c.New(t)
	first := sqlchat.On(open(t, p))
	branch := grow(t, first, "c", 1)
	together(t, handles, func(i int) error {
		db, err := p.Open(background)
		if err != nil {
			return err
		}
		s, head := sqlchat.On(db), branch.HeadMessageID
		for turn := 0; turn < turns; {
			next, err := s.Append(background, chat.AppendRequest{
				ChatID: "c", BranchID: branch.ID, ExpectedHead: head,
				Messages: []chat.Message{text("", fmt.Sprintf("q%d.%d", i, turn), "", "a question"), text("", fmt.Sprintf("a%d.%d", i, turn), "", "an answer")},
			})
			var moved *chat.HeadError
			switch {
			case errors.As(err, &moved):
				head = moved.Actual
			case err != nil:
				return errors.Join(err, db.Close())
			default:
				head = next
				turn++
			}
		}
		return db.Close()
	})
	n := 0
	for _, err := range first.Messages(background, "c") {
		require.NoError(t, err)
		n++
	}
	require.Equal(t, 1+2*handles*turns, n)
	infos, err := first.ListBranches(background, "c")
	require.NoError(t, err)
	require.Equal(t, n, infos[0].MessageCount)
	found, err := first.SearchMessages(background, "c", "question", chat.SearchOptions{Limit: 1000})
	require.NoError(t, err)
	require.Len(t, found, handles*turns)
}

// testForeign refuses databases with other tables of the same names, and changes nothing.
func testForeign(t *testing.T, c Config) {
	for _, test := range []struct{ script, table string }{
		{`CREATE TABLE chats (id INT, room INT)`, "chats"},
		{`CREATE TABLE messages (id INT, body INT)`, "messages"},
		{`CREATE TABLE branches (id INT, city INT)`, "branches"},
		{`CREATE TABLE lineage_messages (id INT)`, "lineage_messages"},
	} {
		p := c.New(t)
		require.NoError(t, p.Exec(background, test.script))
		_, err := p.Open(background)
		require.ErrorIs(t, err, sqladapter.ErrForeign, test.script)
		var e *sqladapter.TableError
		require.ErrorAs(t, err, &e)
		require.Equal(t, test.table, e.Table)
		if test.table != "lineage_messages" {
			require.Error(t, p.Exec(background, `SELECT 1 FROM lineage_messages`), "nothing was made")
		}
		require.NoError(t, p.Exec(background, strings.Replace(test.script, "CREATE", "DROP", 1)[:strings.Index(test.script, "(")-2]))
		require.NoError(t, open(t, p).Close(), "it is empty now")
	}
}

func testNewer(t *testing.T, c Config) {
	p := c.New(t)
	require.NoError(t, open(t, p).Close())
	require.NoError(t, p.Exec(background, `INSERT INTO lineage_migrations VALUES (99, 'later', 0)`))
	_, err := p.Open(background)
	require.ErrorIs(t, err, sqladapter.ErrNewer)
}

// testTitles reads the titles of more chats than fit in one statement.
func testTitles(t *testing.T, c Config) {
	const count = 1500
	p := c.New(t)
	s := sqlchat.On(open(t, p))
	for at := 0; at < count; at += 500 {
		var script strings.Builder
		script.WriteString(`INSERT INTO chats (id, "userId", title, "createdAt", "updatedAt") VALUES `)
		for i := at; i < at+500; i++ {
			fmt.Fprintf(&script, "('c%04d', 'ada', 'Title %d', 1, 2), ", i, i)
		}
		require.NoError(t, p.Exec(background, strings.TrimSuffix(script.String(), ", ")))
	}
	_, err := s.CreateChat(background, chat.Chat{ID: "a", UserID: "ada"})
	require.NoError(t, err)
	titled, ok := s.(interface {
		Titles(ctx context.Context) iter.Seq2[chat.Chat, error]
	})
	require.True(t, ok)
	n := -1
	for found, err := range titled.Titles(background) {
		require.NoError(t, err)
		want := chat.Chat{ID: "a"}
		if n >= 0 {
			want = chat.Chat{ID: fmt.Sprintf("c%04d", n), Title: fmt.Sprint("Title ", n)}
		}
		require.Equal(t, want, found)
		n++
	}
	require.Equal(t, count, n)
}

// testLongIDs refuses ids that are too long for the database's keys.
func testLongIDs(t *testing.T, c Config) {
	limits := c.Dialect.Limits()
	if limits.IDBytes == 0 && limits.IDUnits == 0 {
		t.Skip("not tested: the database has no limit of its own")
	}
	s := sqlchat.On(open(t, c.New(t)))
	most := max(limits.IDBytes, limits.IDUnits)
	fits, long := strings.Repeat("x", most), strings.Repeat("x", most+1)
	_, err := s.CreateChat(background, chat.Chat{ID: long, UserID: "ada"})
	require.ErrorIs(t, err, chat.ErrInvalid)
	_, err = s.CreateChat(background, chat.Chat{ID: "c", UserID: long})
	require.ErrorIs(t, err, chat.ErrInvalid)
	_, err = s.CreateChat(background, chat.Chat{ID: fits, UserID: fits})
	require.NoError(t, err)
	require.ErrorIs(t, s.AddMessage(background, text(fits, long, "", "")), chat.ErrInvalid)
	require.NoError(t, s.AddMessage(background, text(fits, fits, "", "")))
	_, err = s.CreateBranch(background, chat.Branch{ChatID: fits, Name: long})
	require.ErrorIs(t, err, chat.ErrInvalid)
	_, err = s.CreateBranch(background, chat.Branch{ID: fits, ChatID: fits, Name: fits})
	require.NoError(t, err)
	_, err = s.CreateCheckpoint(background, chat.Checkpoint{ChatID: fits, Name: long, MessageID: fits})
	require.ErrorIs(t, err, chat.ErrInvalid)
}

// testSharedPool uses a pool of the caller, which stays usable afterwards.
func testSharedPool(t *testing.T, c Config) {
	p := c.New(t)
	pool := c.Pool(t, p)
	for _, id := range []string{"c", "d"} {
		db, err := c.WithPool(background, pool, sqladapter.Options{})
		require.NoError(t, err)
		s := sqlchat.On(db)
		branch := grow(t, s, id, 3)
		requireChain(t, s, id, string(branch.HeadMessageID), id+".0", id+".1", id+".2")
		requireFound(t, s, id, "message", id+".0", id+".1", id+".2")
		require.NoError(t, db.Close())
		require.NoError(t, pool.Ping(), "it is the caller's to close")
	}
	require.NoError(t, p.Exec(background, `UPDATE lineage_migrations SET version = 99 WHERE version = 1`))
	_, err := c.WithPool(background, pool, sqladapter.Options{})
	require.ErrorIs(t, err, sqladapter.ErrNewer)
	require.NoError(t, pool.Ping(), "opening that fails does not close it either")
	require.NoError(t, p.Exec(background, `UPDATE lineage_migrations SET version = 1 WHERE version = 99`))

	// The same on a single connection, concurrently.
	pool.SetMaxOpenConns(1)
	db, err := c.WithPool(background, pool, sqladapter.Options{})
	require.NoError(t, err)
	together(t, 8, func(i int) error {
		id := fmt.Sprint("e", i)
		if _, err := sqlchat.On(db).CreateChat(background, chat.Chat{ID: id, UserID: "ada"}); err != nil {
			return err
		}
		_, err := sqlchat.SearchAll(background, db, "ada", "message", chat.SearchOptions{})
		return err
	})
	require.NoError(t, db.Close())
}

// testConnections opens no more connections than the options allow.
func testConnections(t *testing.T, c Config) {
	db, err := c.OpenWith(background, c.New(t), sqladapter.Options{Connections: 1})
	require.NoError(t, err)
	together(t, 8, func(i int) error {
		id := fmt.Sprint("c", i)
		if _, err := sqlchat.On(db).CreateChat(background, chat.Chat{ID: id, UserID: "ada"}); err != nil {
			return err
		}
		_, err := sqlchat.On(db).Chat(background, id)
		return err
	})
	require.NoError(t, db.Close())
}

// testNotTables reports names that are not tables of this package.
func testNotTables(t *testing.T, c Config) {
	for _, test := range []struct {
		script, table, detail string
		err                   error
		ours                  bool // run the script on a database created by this package
	}{
		{`CREATE VIEW chats AS SELECT 1 AS id`, "chats", "it is a view, not a table", sqladapter.ErrForeign, false},
		{`CREATE VIEW messages_fts AS SELECT 1 AS id`, "messages_fts", "it is a view, not a table", sqladapter.ErrForeign, false},
		{`CREATE VIEW lineage_messages AS SELECT 1 AS id`, "lineage_messages", "it is a view, not a table", sqladapter.ErrForeign, false},
		{`CREATE VIEW lineage_migrations AS SELECT 1 AS version`, "lineage_migrations", "it is a view, not a table", sqladapter.ErrForeign, false},
		{`CREATE TABLE lineage_migrations (id INT)`, "lineage_migrations", "no column version", sqladapter.ErrForeign, false},
		{`DROP TABLE lineage_migrations`, "lineage_migrations", "missing", sqladapter.ErrCorrupt, true},
		{`DELETE FROM lineage_migrations`, "lineage_migrations", "empty", sqladapter.ErrCorrupt, true},
	} {
		p := c.New(t)
		if test.ours {
			db, err := p.Open(background)
			require.NoError(t, err)
			grow(t, sqlchat.On(db), "c", 2)
			require.NoError(t, db.Close())
		}
		require.NoError(t, p.Exec(background, test.script))
		_, err := p.Open(background)
		require.ErrorIs(t, err, test.err, test.script)
		var e *sqladapter.TableError
		require.ErrorAs(t, err, &e)
		require.Equal(t, test.table, e.Table)
		require.Contains(t, e.Detail, test.detail)
		if test.ours {
			require.NoError(t, p.Exec(background, `UPDATE chats SET title = 'still there' WHERE id = 'c'`), "nothing was changed")
		} else {
			require.Error(t, p.Exec(background, `SELECT 1 FROM branches`), "nothing was made")
		}
	}
}
