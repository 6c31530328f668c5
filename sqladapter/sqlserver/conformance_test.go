package sqlserver_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/chat/chattest"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
	"github.com/lineage-store/lineage/sqladapter/sqlserver"
)

// server names the environment variable with the DSN of a test server, whose user may create
// databases.
const server = "LINEAGE_TEST_SQLSERVER"

// newDatabase creates an empty database that is dropped at the end of the test.
func newDatabase(t testing.TB) string {
	dsn := os.Getenv(server)
	if dsn == "" {
		t.Skipf("NOT TESTED against a real SQL Server: %s names none", server)
	}
	u, err := url.Parse(dsn)
	require.NoError(t, err)
	admin, err := sql.Open("sqlserver", dsn)
	require.NoError(t, err)
	var random [8]byte
	_, err = rand.Read(random[:])
	require.NoError(t, err)
	name := "lineage_" + hex.EncodeToString(random[:])
	_, err = admin.Exec(fmt.Sprintf("CREATE DATABASE [%s]", name))
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := admin.Exec(fmt.Sprintf("DROP DATABASE [%s]", name))
		require.NoError(t, err)
		require.NoError(t, admin.Close())
	})
	values := u.Query()
	values.Set("database", name)
	u.RawQuery = values.Encode()
	return u.String()
}

// TestChats runs the suite for chat stores.
//
// feature: storage/sqlserver
func TestChats(t *testing.T) { chats(t, chattest.RunSequential) }

// TestConformance runs what the suite does from many goroutines, and random calls, under the race detector.
func TestConformance(t *testing.T) {
	campaign.Long(t)
	chats(t, chattest.RunConcurrent)
}

func chats(t *testing.T, run func(*testing.T, chattest.Config)) {
	if os.Getenv(server) == "" {
		t.Skipf("NOT TESTED against a real SQL Server: %s names none", server)
	}
	run(t, chattest.Config{Search: true, MaxID: 255, New: func(t testing.TB) chattest.OpenFunc {
		dsn := newDatabase(t)
		return func(ctx context.Context) (chat.Store, func() error, error) {
			db, err := sqlserver.Open(ctx, dsn, sqladapter.Options{})
			if err != nil {
				return nil, nil, err
			}
			return sqlchat.On(db), db.Close, nil
		}
	}})
}
