package postgres_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/postgres"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
)

// TestDeletionOfAnUnknownSize deletes a chat whose size the server has no statistics of: no statement
// compares each of its messages with each.
func TestDeletionOfAnUnknownSize(t *testing.T) {
	campaign.Long(t)
	const messages = 6000
	dsn := pgtest.DSN(t)
	conn, err := pgx.Connect(background, dsn)
	require.NoError(t, err)
	defer conn.Close(background)
	var texts []string
	db, err := postgres.Open(background, dsn, sqladapter.Options{Connections: 1, Trace: func(text string) { texts = append(texts, text) }})
	require.NoError(t, err)
	defer db.Close()
	for _, id := range []string{"deleted", "like it"} {
		_, err := sqlchat.On(db).CreateChat(background, chat.Chat{ID: id, UserID: "ada"})
		require.NoError(t, err)
		_, err = conn.Exec(background, `INSERT INTO messages (id, chatid, parentid, name, data, createdat)
			SELECT $1 || n, $1, CASE WHEN n > 1 THEN $1 || n - 1 END, 'user', '0', 0 FROM generate_series(1, $2::bigint) AS n`, id, messages)
		require.NoError(t, err)
	}
	texts = nil
	deleted, err := sqlchat.On(db).DeleteChat(background, "deleted", chat.DeleteOptions{})
	require.NoError(t, err)
	require.True(t, deleted)

	ofOneChat := regexp.MustCompile(`^SELECT [^$]*\$1[^$]*( LIMIT \$2)?$`)
	joins := 0
	for _, text := range texts {
		found := ofOneChat.FindStringSubmatch(text)
		if found == nil {
			continue
		}
		args := []any{"like it"}
		if found[1] != "" {
			args = append(args, 1)
		}
		var explained []struct{ Plan plan }
		require.NoError(t, conn.QueryRow(background, `EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) `+text, args...).Scan(&explained), text)
		require.Less(t, explained[0].Plan.rows(), 20.0*messages, text)
		if strings.Contains(text, " JOIN ") {
			joins++
		}
	}
	require.GreaterOrEqual(t, joins, 3)
}

// plan is a plan that was carried out.
type plan struct {
	Rows    float64 `json:"Actual Rows"`
	Loops   float64 `json:"Actual Loops"`
	Joined  float64 `json:"Rows Removed by Join Filter"`
	Removed float64 `json:"Rows Removed by Filter"`
	Plans   []plan
}

// rows returns how many rows all steps of a plan looked at.
func (p plan) rows() float64 {
	n := (p.Rows + p.Joined + p.Removed) * p.Loops
	for _, below := range p.Plans {
		n += below.rows()
	}
	return n
}
