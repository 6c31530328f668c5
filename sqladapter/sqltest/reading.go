package sqltest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
)

// testKeepTables opens databases without changing their tables.
func testKeepTables(t *testing.T, c Config) {
	open := func(p Database, s sqladapter.Schema) (*sqladapter.DB, error) {
		return c.OpenWith(background, p, sqladapter.Options{Schema: s})
	}
	refused := func(p Database, s sqladapter.Schema) {
		t.Helper()
		_, err := open(p, s)
		require.ErrorIs(t, err, sqladapter.ErrNoTables)
		require.Error(t, p.Exec(background, `SELECT 1 FROM lineage_migrations`), "nothing was created")
	}
	// Nothing is there, or something else.
	p := c.New(t)
	refused(p, sqladapter.KeepTables)
	refused(p, sqladapter.AdoptTables)
	require.NoError(t, p.Exec(background, `CREATE TABLE other (id INT)`))
	refused(p, sqladapter.KeepTables)
	refused(p, sqladapter.AdoptTables)
	require.Error(t, p.Exec(background, `SELECT 1 FROM chats`))

	// The tables are those of another program.
	documented := c.New(t)
	require.NoError(t, documented.Exec(background, c.Documented))
	refused(documented, sqladapter.KeepTables)
	db, err := open(documented, sqladapter.AdoptTables)
	require.NoError(t, err)
	require.NoError(t, db.Close())

	// They are ours, as of an older version, of this one, and of a newer one.
	db, err = open(p, sqladapter.CreateTables)
	require.NoError(t, err)
	_, err = sqlchat.On(db).CreateChat(background, chat.Chat{ID: "c", UserID: "ada"})
	require.NoError(t, err)
	require.NoError(t, db.Close())
	for _, s := range []sqladapter.Schema{sqladapter.KeepTables, sqladapter.AdoptTables} {
		db, err := open(p, s)
		require.NoError(t, err)
		found, err := sqlchat.On(db).Chat(background, "c")
		require.NoError(t, err)
		require.Equal(t, "ada", found.UserID)
		require.NoError(t, db.Close())
	}
	last := len(c.Dialect.Migrations())
	require.NoError(t, p.Exec(background, fmt.Sprintf(`UPDATE lineage_migrations SET version = 99 WHERE version = %d`, last)))
	for _, s := range []sqladapter.Schema{sqladapter.KeepTables, sqladapter.AdoptTables} {
		_, err = open(p, s)
		require.ErrorIs(t, err, sqladapter.ErrNewer)
	}
	require.NoError(t, p.Exec(background, `DELETE FROM lineage_migrations WHERE version = 99`))
	_, err = open(p, sqladapter.KeepTables)
	require.ErrorIs(t, err, sqladapter.ErrNoTables)
	require.ErrorContains(t, err, fmt.Sprintf("version %d", last-1))
}
