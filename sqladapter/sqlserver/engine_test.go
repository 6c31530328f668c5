package sqlserver_test

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/engine/enginetest"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
	"github.com/lineage-store/lineage/sqladapter/sqlserver"
)

func TestEngine(t *testing.T) { engines(t, enginetest.RunSequential) }

func TestEngineConcurrent(t *testing.T) { engines(t, enginetest.RunConcurrent) }

func engines(t *testing.T, run func(*testing.T, enginetest.Config)) {
	if os.Getenv(server) == "" {
		t.Skipf("NOT TESTED against a real SQL Server: %s names none", server)
	}
	run(t, enginetest.Config{New: func(t testing.TB) chat.Store {
		db, err := sqlserver.Open(context.Background(), newDatabase(t), sqladapter.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, db.Close()) })
		return sqlchat.On(db)
	}})
}
