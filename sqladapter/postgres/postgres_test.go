//test:long

package postgres_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/chat/chattest"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/internal/statements"
	"github.com/lineage-store/lineage/sqladapter/postgres"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
)

var background = context.Background()

// TestStatements lets the database prepare every statement.
func TestStatements(t *testing.T) {
	dsn := pgtest.DSN(t)
	db, err := postgres.Open(background, dsn, sqladapter.Options{})
	require.NoError(t, err)
	defer db.Close()
	raw, err := sql.Open("pgx", dsn)
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
	syntax := postgres.Dialect{}.Syntax()
	for _, s := range all {
		if !s.IsFor(postgres.Dialect{}) {
			continue
		}
		text, err := syntax.Render(s.Text, 2)
		require.NoError(t, err, s.Name)
		prepared, err := raw.Prepare(text)
		require.NoError(t, err, "%s: %s", s.Name, text)
		require.NoError(t, prepared.Close())
	}
}

// TestUnstorable refuses JSON that the database cannot store, naming it.
func TestUnstorable(t *testing.T) {
	db, err := postgres.Open(background, pgtest.DSN(t), sqladapter.Options{})
	require.NoError(t, err)
	defer db.Close()
	s := sqlchat.On(db)
	_, err = s.CreateChat(background, chat.Chat{ID: "c", UserID: "ada"})
	require.NoError(t, err)
	for _, data := range []string{`1e200000`, `{"a":-1e200000}`} {
		err := s.AddMessage(background, chat.Message{ID: "m", ChatID: "c", Name: "user", Data: json.RawMessage(data)})
		require.ErrorIs(t, err, chat.ErrInvalid, data)
		var e *chat.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, "m", e.ID)
	}
	_, err = s.CreateChat(background, chat.Chat{ID: "d", UserID: "ada", Metadata: json.RawMessage(`{"a":1e200000}`)})
	require.ErrorIs(t, err, chat.ErrInvalid)
	require.NoError(t, s.AddMessage(background, chat.Message{ID: "m", ChatID: "c", Name: "user", Data: json.RawMessage(`"fine"`)}))
}

// TestLargeTexts stores and finds texts that are too large for a text vector.
func TestLargeTexts(t *testing.T) {
	campaign.Long(t)
	db, err := postgres.Open(background, pgtest.DSN(t), sqladapter.Options{})
	require.NoError(t, err)
	defer db.Close()
	s := sqlchat.On(db)
	_, err = s.CreateChat(background, chat.Chat{ID: "c", UserID: "ada"})
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	for b.Len() < 3<<20 {
		fmt.Fprintf(&b, "w%x %x-%x/%x ", random.Uint64(), random.Uint32(), random.Uint32(), random.Uint32())
	}
	b.WriteString("needle at the very end, with ümläuts")
	data, err := json.Marshal(b.String())
	require.NoError(t, err)
	require.NoError(t, s.AddMessage(background, chat.Message{ID: "large", ChatID: "c", Name: "user", Data: data}))
	short := strings.Repeat("ab cd ef é ", 200_000)
	data, err = json.Marshal(short)
	require.NoError(t, err)
	require.NoError(t, s.AddMessage(background, chat.Message{ID: "short", ChatID: "c", Name: "user", Data: data}))
	for query, want := range map[string]string{"needle": "large", "UMLAUTS": "large", "cd": "short"} {
		found, err := s.SearchMessages(background, "c", query, chat.SearchOptions{})
		require.NoError(t, err)
		require.Len(t, found, 1, query)
		require.Equal(t, want, found[0].Message.ID)
	}
}

// TestPoolOfPgx uses a pgx pool and a database in lower case.
//
// feature: storage/pool
func TestPoolOfPgx(t *testing.T) {
	c := config(t, false)
	p := c.New(t).(place)
	require.NoError(t, p.Exec(background, c.Documented))
	pool, err := pgxpool.New(background, p.dsn)
	require.NoError(t, err)
	defer pool.Close()
	shared := stdlib.OpenDBFromPool(pool)
	defer shared.Close()
	db, err := postgres.New(background, shared, sqladapter.Options{})
	require.NoError(t, err)
	_, err = sqlchat.On(db).CreateChat(background, chat.Chat{ID: "c", UserID: "ada"})
	require.NoError(t, err)
	require.NoError(t, db.Close())
	var user string
	require.NoError(t, pool.QueryRow(background, `SELECT userid FROM chats`).Scan(&user))
	require.Equal(t, "ada", user)
}

// TestIsolation opens and writes a database concurrently, with every default isolation level.
func TestIsolation(t *testing.T) {
	for _, level := range []string{"read committed", "repeatable read", "serializable"} {
		t.Run(level, func(t *testing.T) {
			const openers = 4
			dsn := pgtest.DSN(t)
			config, err := pgx.ParseConfig(dsn)
			require.NoError(t, err)
			config.RuntimeParams["default_transaction_isolation"] = level
			errs := make([]error, openers)
			var names []string
			for i := range openers {
				for turn := range 10 {
					names = append(names, fmt.Sprintf("%d.%d", i, turn))
				}
			}
			var all sync.WaitGroup
			for i := range openers {
				all.Go(func() {
					pool := stdlib.OpenDB(*config)
					defer pool.Close()
					db, err := postgres.New(background, pool, sqladapter.Options{})
					if err != nil {
						errs[i] = err
						return
					}
					_, err = sqlchat.On(db).UpsertChat(background, chat.Chat{ID: "c", UserID: "ada"})
					for turn := 0; turn < 10 && err == nil; turn++ {
						err = chattest.AddMember(background, sqlchat.On(db), "c", fmt.Sprintf("%d.%d", i, turn))
					}
					errs[i] = errors.Join(err, db.Close())
				})
			}
			all.Wait()
			require.NoError(t, errors.Join(errs...))
			db, err := postgres.Open(background, dsn, sqladapter.Options{})
			require.NoError(t, err)
			defer db.Close()
			chattest.RequireMembers(t, sqlchat.On(db), "c", names)
		})
	}
}
