package postgres_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/chat/chattest"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/postgres"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
	"github.com/lineage-store/lineage/sqladapter/sqltest"
)

// TestPooler runs the suite through PgBouncer in transaction mode.
//
// feature: storage/pooler
func TestPooler(t *testing.T) {
	throughPooler(t, chattest.RunSequential)
	pooled := pgtest.Pooled(t)
	for _, mode := range []string{"exec", "simple_protocol", "cache_describe"} {
		t.Run(mode, func(t *testing.T) {
			dsn, _ := pooled(t)
			config := config(t, false)
			config.New = func(testing.TB) sqltest.Database {
				return place{strings.Replace(dsn, "mode=exec", "mode="+mode, 1), false}
			}
			sqltest.RunAdopted(t, config)
		})
	}
}

func TestPoolerConcurrent(t *testing.T) { throughPooler(t, chattest.RunConcurrent) }

func throughPooler(t *testing.T, run func(*testing.T, chattest.Config)) {
	campaign.Long(t)
	pooled := pgtest.Pooled(t)
	t.Run("chats", func(t *testing.T) {
		run(t, chattest.Config{Search: true, Reformats: true, MaxID: 1300, LongChain: 2000, New: func(t testing.TB) chattest.OpenFunc {
			dsn, _ := pooled(t)
			return func(ctx context.Context) (chat.Store, func() error, error) {
				db, err := postgres.Open(ctx, dsn, sqladapter.Options{Connections: 30}) // more than the pooler has
				if err != nil {
					return nil, nil, err
				}
				return sqlchat.On(db), db.Close, nil
			}
		}})
	})
}

// TestPoolerWithPrepared reports what to do about prepared statements behind a pooler.
func TestPoolerWithPrepared(t *testing.T) {
	campaign.Long(t)
	dsn, direct := pgtest.Pooled(t)(t)
	db, err := postgres.Open(background, direct, sqladapter.Options{})
	require.NoError(t, err)
	require.NoError(t, db.Close())
	dsn = strings.Replace(dsn, "default_query_exec_mode=exec", "default_query_exec_mode=cache_statement", 1)
	errs := make([]error, 2)
	for i := range errs { // both on the pooler's one connection
		db, err := postgres.Open(background, dsn, sqladapter.Options{Connections: 1})
		if err == nil {
			_, err = sqlchat.On(db).Chat(background, "c")
			defer db.Close()
		}
		errs[i] = err
	}
	require.ErrorContains(t, errors.Join(errs...), "default_query_exec_mode=exec")
}
