package sqlite_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/sqlitefile"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
	"github.com/lineage-store/lineage/sqladapter/sqlite"
)

// TestAlternatingWriters writes alternately with another program that does not wait for locks. Between two calls of
// ours nothing holds a lock, because every statement runs within a call: in its goroutine.
//
// feature: storage/alternating
func TestAlternatingWriters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "chats.db")
	elsewhere := new(atomic.Int64)
	open := func() *sqladapter.DB {
		db, err := sqlite.Open(background, path, sqladapter.Options{Trace: func(string) {
			if !bytes.Contains(debug.Stack(), []byte("TestAlternatingWriters")) {
				elsewhere.Add(1)
			}
		}})
		require.NoError(t, err)
		return db
	}
	db := open()
	plain, err := sql.Open("sqlite", sqlitefile.DSN(path, "deferred", "busy_timeout(0)", "foreign_keys(ON)"))
	require.NoError(t, err)
	defer plain.Close()
	other := func(statements ...string) {
		t.Helper()
		tx, err := plain.Begin()
		require.NoError(t, err)
		for _, s := range statements {
			_, err := tx.Exec(s)
			require.NoError(t, err)
		}
		require.NoError(t, tx.Commit())
	}
	const begun = 6000
	other(`INSERT INTO chats (id, userId, createdAt, updatedAt) VALUES ('c', 'ada', 1, 1)`,
		fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
			INSERT INTO messages (id, chatId, parentId, name, data, createdAt)
			SELECT 'p' || i, 'c', CASE WHEN i > 0 THEN 'p' || (i - 1) END, 'user', '"zebra ' || i || '"', 1 FROM n`, begun-1),
		fmt.Sprintf(`INSERT INTO branches (id, chatId, name, headMessageId, isActive, createdAt) VALUES ('b', 'c', 'main', 'p%d', 1, 1)`, begun-1))
	s := sqlchat.On(db)
	head := chat.Ref(fmt.Sprint("p", begun-1))
	for i := range 40 {
		id := fmt.Sprint("ours", i)
		head, err = s.Append(background, chat.AppendRequest{
			ChatID: "c", BranchID: "b", ExpectedHead: head, Messages: []chat.Message{{ID: id, Name: "user", Data: []byte(`"ours"`)}},
		})
		require.NoError(t, err)
		theirs := fmt.Sprint("theirs", i)
		other(fmt.Sprintf(`INSERT INTO messages (id, chatId, parentId, name, data, createdAt) VALUES ('%s', 'c', '%s', 'user', '"theirs"', 1)`, theirs, head),
			fmt.Sprintf(`UPDATE branches SET headMessageId = '%s' WHERE id = 'b'`, theirs))
		head = chat.Ref(theirs)
		if i%10 == 5 {
			infos, err := s.ListBranches(background, "c")
			require.NoError(t, err)
			require.Equal(t, begun+2*(i+1), infos[0].MessageCount)
			other(`UPDATE chats SET title = 'after a read'`)
			n, err := s.CountMessages(background, "c", fmt.Sprint("ours", i))
			require.NoError(t, err)
			require.Equal(t, begun+2*i+1, n)
			other(`UPDATE chats SET title = 'after another'`)
		}
		if i == 35 {
			found, err := s.SearchMessages(background, "c", "ours", chat.SearchOptions{Limit: 100})
			require.NoError(t, err)
			require.Len(t, found, 36)
			other(`UPDATE chats SET title = 'after a search'`)
		}
	}
	other(`INSERT INTO lineage_deleting (chatId, since) VALUES ('c', 1)`) // as a program that was killed leaves it
	require.NoError(t, db.Close())
	db = open()
	other(`INSERT INTO chats (id, userId, createdAt, updatedAt) VALUES ('d', 'ada', 1, 1)`)
	left := -1
	require.NoError(t, plain.QueryRow(`SELECT COUNT(*) FROM messages`).Scan(&left))
	require.Zero(t, left, "the deletion is finished")
	require.NoError(t, db.Close())
	require.Zero(t, elsewhere.Load(), "statements outside of a call")
}
