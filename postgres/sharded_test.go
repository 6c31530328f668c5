package postgres

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/lineage/backend"
)

// liar answers as a coordinator of distributed tables was seen to: an INSERT that a conflict removed is reported as
// one row, and a commit that was applied as an unknown error.
type liar struct {
	net.Conn
	refuse *atomic.Int64 // so many commits
	in     []byte        // of the server
	out    []byte        // for the client
}

func (l *liar) Read(b []byte) (int, error) {
	for len(l.out) == 0 {
		part := make([]byte, 16<<10)
		n, err := l.Conn.Read(part)
		l.in = append(l.in, part[:n]...)
		for len(l.in) >= 5 {
			size := 1 + int(binary.BigEndian.Uint32(l.in[1:]))
			if len(l.in) < size {
				break
			}
			l.out = append(l.out, l.lie(l.in[:size])...)
			l.in = l.in[size:]
		}
		if err != nil && len(l.out) == 0 {
			return 0, err
		}
	}
	n := copy(b, l.out)
	l.out = l.out[n:]
	return n, nil
}

// lie returns what the client gets instead of a message.
func (l *liar) lie(message []byte) []byte {
	if message[0] != 'C' {
		return message
	}
	switch tag := string(bytes.TrimRight(message[5:], "\x00")); {
	case tag == "INSERT 0 0":
		return append(append([]byte{}, message[:5]...), "INSERT 0 1\x00"...)
	case tag == "COMMIT" && l.refuse.Add(-1) >= 0:
		fields := "SERROR\x00VERROR\x00CXX000\x00Mcould not commit transaction for shard 102008 on at least one active node\x00\x00"
		return append(binary.BigEndian.AppendUint32([]byte{'E'}, uint32(4+len(fields))), fields...)
	}
	return message
}

// newLiar returns connections to a server that lies.
func newLiar(t testing.TB, dsn string) (*pgxpool.Pool, *atomic.Int64) {
	refuse := new(atomic.Int64)
	return newPool(t, dsn, func(config *pgxpool.Config) {
		config.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			return &liar{Conn: conn, refuse: refuse}, err
		}
	}), refuse
}

// Two handles write after the same head. Both commits are there, although the server reports that each statement
// inserted a row.
func TestConflictReportedAsARow(t *testing.T) {
	dsn := pgtest.DSN(t)
	pool, _ := newLiar(t, dsn)
	a, b := handle(t, pool, "s"), handle(t, pool, "s")
	for range 3 {
		createThread(t, a, backend.Full)
		createThread(t, b, backend.Normal)
		require.NoError(t, a.Sync(background))
		require.NoError(t, b.Sync(background))
	}
	witness := handle(t, newPool(t, dsn, nil), "s")
	require.Len(t, history(t, witness), 6)
	require.Equal(t, history(t, witness), history(t, a))
	require.Equal(t, history(t, witness), history(t, b))
	requireSound(t, witness)
}

// A commit that was applied is answered with an unknown error. It is looked up, and is there once.
func TestUnknownErrorOfACommit(t *testing.T) {
	dsn := pgtest.DSN(t)
	pool, refuse := newLiar(t, dsn)
	e := handle(t, pool, "s")
	createThread(t, e, backend.Full)
	commits := uint64(1)
	for _, d := range []backend.Durability{backend.Full, backend.Normal} {
		for _, contended := range []int{0, 2} {
			e.writing.Lock()
			e.contended = contended
			e.writing.Unlock()
			refuse.Store(1)
			_, at := createThread(t, e, d)
			require.Less(t, refuse.Load(), int64(1), "a commit was refused")
			commits++
			require.Equal(t, commits, at.Number)
		}
	}
	batch := make([]*pending, 3)
	for i := range batch {
		_, commit := threadCommit()
		batch[i] = &pending{ctx: background, commit: commit, full: true, done: make(chan struct{})}
	}
	refuse.Store(1)
	require.Empty(t, e.commitAndWait(batch))
	for _, p := range batch {
		require.NoError(t, p.err)
	}
	refuse.Store(1)
	require.NoError(t, e.Sync(background))
	refuse.Store(0)
	witness := handle(t, newPool(t, dsn, nil), "s")
	require.Len(t, history(t, witness), int(commits)+3)
	require.Equal(t, history(t, witness), history(t, e))
	requireSound(t, witness)
}

// Statements do not have the forms whose answers are wrong on distributed tables: rows are inserted as values, locked
// by a statement of their own, and never counted by what the server says was affected. Nor do they have forms that such a
// server refuses: volatile functions in an update, times in its CASE and COALESCE, and names of columns beside a WITH. The search index depends on no
// answer to an INSERT, so it may also insert the result of a query, and it deletes in a WITH that counts the rows it returns.
func TestStatementsThatAServerMayDistribute(t *testing.T) {
	forms := map[string]*regexp.Regexp{
		"INSERT … SELECT":                    regexp.MustCompile(`(?is)\bINSERT\s+INTO\s+\w+\s*(AS\s+\w+\s*)?(\([^)]*\)\s*)?(WITH|SELECT)\b`),
		"a statement that changes in a WITH": regexp.MustCompile(`(?is)\bWITH\b.*\b(INSERT\s+INTO|UPDATE\s+lineage_|DELETE\s+FROM)`),
		"a shared lock":                      regexp.MustCompile(`(?is)\bFOR\s+(KEY\s+)?SHARE\b`),
		"a volatile function":                regexp.MustCompile(`(?i)\b(clock_timestamp|random|gen_random_uuid)\s*\(`),
		"a time in a CASE of an update":      regexp.MustCompile(`(?is)\bUPDATE\b.*\b(CASE|COALESCE)\b[^)]*\b(now|\w+_timestamp)\s*\(`),
		"a query with a list of its columns": regexp.MustCompile(`(?i)(\bWITH\s+(RECURSIVE\s+)?|\),\s*)\w+\s*\([^)]*\)\s+AS\b`),
		"a setting with a table":             regexp.MustCompile(`(?is)set_config\(.*\bFROM\s+lineage_`),
	}
	inSearch := map[string]*regexp.Regexp{
		"INSERT … SELECT":                    regexp.MustCompile(`(?i)^INSERT INTO lineage_search`),
		"a statement that changes in a WITH": regexp.MustCompile(`^WITH gone AS \(DELETE FROM $`), // the rest is checked below
	}
	statements := make(map[string]int)
	for _, file := range sources(t) {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NotRegexp(t, `RowsAffected|CommandTag`, string(source), file)
		folder := filepath.Dir(file)
		for _, text := range literals(t, file, "") {
			if strings.Contains(text, "lineage_") {
				statements[folder]++
			}
			for name, form := range forms {
				allowed := inSearch[name]
				if !form.MatchString(text) || folder == searchFolder && allowed != nil && allowed.MatchString(text) {
					continue
				}
				require.Fail(t, name, "%s: %s", file, text)
			}
			if strings.HasSuffix(text, "FROM gone") {
				require.Regexp(t, ` RETURNING \w+\) SELECT count\(\*\) FROM gone$`, text)
			}
		}
	}
	require.Greater(t, statements["."], 15)
	require.Greater(t, statements[searchFolder], 30)
}

// Migrations add and drop a constraint by a statement of its own, and give it a name: servers refuse other forms for tables that
// they distribute.
func TestMigrationsOfConstraints(t *testing.T) {
	constraint := regexp.MustCompile(`(?i)^ALTER\s+TABLE\b(.|\n)*\b(CONSTRAINT|KEY|UNIQUE|CHECK|REFERENCES|EXCLUDE)\b`)
	alone := regexp.MustCompile(`^ALTER TABLE \w+ (DROP CONSTRAINT \w+|ADD CONSTRAINT \w+ (PRIMARY KEY|UNIQUE|CHECK) \([^()]*\))$`)
	constraints := 0
	for _, statements := range migrations {
		for _, statement := range statements {
			if constraint.MatchString(statement) {
				require.Regexp(t, alone, statement)
				constraints++
			}
		}
	}
	require.Positive(t, constraints)
}
