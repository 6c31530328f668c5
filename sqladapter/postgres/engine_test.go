package postgres_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/engine/enginetest"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/postgres"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
)

func TestEngine(t *testing.T) { engines(t, enginetest.RunSequential) }

func TestEngineConcurrent(t *testing.T) {
	campaign.Long(t)
	engines(t, enginetest.RunConcurrent)
}

func engines(t *testing.T, run func(*testing.T, enginetest.Config)) {
	run(t, enginetest.Config{New: func(t testing.TB) chat.Store {
		db, err := postgres.Open(context.Background(), pgtest.DSN(t), sqladapter.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, db.Close()) })
		return sqlchat.On(db)
	}})
}
