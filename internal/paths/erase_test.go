package paths_test

import (
	"bytes"
	"database/sql"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/search"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/postgres"
	"github.com/lineage-store/lineage/sqladapter/project"
	"github.com/lineage-store/lineage/sqladapter/sqlite"
)

// planted are messages that have tokens in every place where somebody can say something.
type planted struct {
	t      *rapid.T
	name   string
	tokens []string
}

// token returns a word that nobody else says.
func (p *planted) token() string {
	n := rapid.Uint32().Draw(p.t, "token")
	word := fmt.Sprintf("zq%s%07dx%dqz", p.name, n%10_000_000, len(p.tokens))
	p.tokens = append(p.tokens, word)
	return word
}

// body returns a message of JSON in one of the dialects. Places in it are marked with @, and with # those
// that have one token: a place in a long text may be cut in two where the text is cut into chunks.
func (p *planted) body() string {
	message := rapid.SampledFrom([]string{
		`{"role":"user","content":"about @"}`,
		`{"id":"m1","role":"user","parts":[{"type":"text","text":"@"},{"type":"file","url":"data:text/plain,@","filename":"@.pdf","mediaType":"text/plain"}],"metadata":{"custom":"@","deep":{"a":["@"]}}}`,
		`{"role":"assistant","content":[{"type":"thinking","thinking":"@ é","signature":"abc"},{"type":"text","text":"it is @"},{"type":"tool_use","id":"t1","name":"look","input":{"q":"@"}}]}`,
		`{"role":"assistant","content":"","tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{\"q\":\"@\"}"}}],"note":"@"}`,
		`{"role":"tool","tool_call_id":"c1","content":"found @"}`,
		`[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"@"}]},{"type":"document","title":"@","source":{"type":"text","media_type":"text/plain","data":"@"}}]`,
		`{"role":"model","parts":[{"functionCall":{"name":"look","args":{"q":"@"}}},{"functionResponse":{"name":"look","response":{"r":"@"}}},{"inlineData":{"mimeType":"image/png","data":"@","displayName":"@"}}]}`,
		`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"@","annotations":[{"type":"url_citation","title":"@","url":"https://@.example"}]}],"unknown":{"two @":1},"list":["@",{"x":"@"}]}`,
		`"@"`,
		`{"content":"\ud800@","title":"@"} trailing @`,
		`{"content":"# ` + strings.Repeat("long ", 20_000) + `#"}`,
	}).Draw(p.t, "message")
	if strings.Contains(message, "#") {
		message = strings.ReplaceAll(message, "#", p.token())
	}
	for strings.Contains(message, "@") {
		message = strings.Replace(message, "@", p.token(), 1)
	}
	return message
}

func (p *planted) item() lineage.Item {
	item := lineage.Item{Role: rapid.SampledFrom([]string{"user", "assistant", "tool"}).Draw(p.t, "role"), Type: "application/json"}
	switch rapid.IntRange(0, 4).Draw(p.t, "kind") {
	case 0:
		item.Type, item.Body = "text/plain", []byte("said "+p.token())
	case 1:
		item = lineage.Item{Kind: lineage.Asset, Filename: "a.txt", Type: "text/plain", Body: []byte(p.token())}
	default:
		item.Body = []byte(p.body())
	}
	switch rapid.IntRange(0, 3).Draw(p.t, "metadata") {
	case 0:
		item.Metadata = fmt.Appendf(nil, `{"title":"%s","n":1}`, p.token())
	case 1:
		item.Metadata = []byte(p.token())
	case 2:
		item.Metadata = []byte(`{"id":"x-1"}`)
	}
	return item
}

// bytesBelow returns everything in the files of a directory.
func bytesBelow(t require.TestingT, dir string) []byte {
	var all []byte
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		all = append(append(all, path...), b...)
		return err
	}))
	return bytes.ToLower(all)
}

// feedOf returns the records of a store: files may be compressed.
func feedOf(t require.TestingT, s *lineage.Store) []byte {
	var all []byte
	for c, err := range s.View().Feed(bg, lineage.Cursor{}) {
		require.NoError(t, err)
		for _, r := range c.Records {
			all = fmt.Appendf(all, "%q\n", r)
		}
	}
	return bytes.ToLower(all)
}

// What was erased is nowhere, once the store was collected and what follows it has followed:
// not in a file of the store, its search or a database. What others said is still there.
func TestEraseReaches(t *testing.T) {
	testEraseReaches(t, func(dir string) (*sqladapter.DB, func() string) {
		db, err := sqlite.Open(bg, filepath.Join(dir, "chats.db"), sqladapter.Options{})
		require.NoError(t, err)
		return db, func() string { return "" } // its files are looked at
	})
}

// TestEraseReachesPostgres does the same with a projection in Postgres, whose rows are looked at.
func TestEraseReachesPostgres(t *testing.T) {
	campaign.Long(t)
	dsn := pgtest.DSN(t)
	pool, err := sql.Open("pgx", dsn)
	require.NoError(t, err)
	defer pool.Close()
	dir := ""
	testEraseReaches(t, func(in string) (*sqladapter.DB, func() string) {
		if dir != in {
			dir = in
			_, err := pool.ExecContext(bg, `DROP SCHEMA public CASCADE; CREATE SCHEMA public`)
			require.NoError(t, err)
		}
		db, err := postgres.Open(bg, dsn, sqladapter.Options{})
		require.NoError(t, err)
		return db, func() string { return rowsOf(t, pool) }
	})
}

// rowsOf returns all rows of a Postgres database as text, binary columns too.
func rowsOf(t *testing.T, pool *sql.DB) string {
	all, tables := "", []string(nil)
	rows, err := pool.QueryContext(bg, `SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'`)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var name string
		require.NoError(t, rows.Scan(&name))
		tables = append(tables, name)
	}
	require.NoError(t, rows.Err())
	for _, table := range tables {
		var text sql.NullString
		require.NoError(t, pool.QueryRowContext(bg, `SELECT string_agg(t::text, ' ') FROM "`+table+`" t`).Scan(&text))
		all += strings.ToLower(text.String)
	}
	require.NotEmpty(t, tables)
	return all
}

// testEraseReaches opens a database in a directory that is that of one store, and looks at its rows.
func testEraseReaches(t *testing.T, open func(dir string) (*sqladapter.DB, func() string)) {
	rapid.Check(t, func(r *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		require.NoError(r, err)
		s, err := lineage.Open(bg, filepath.Join(dir, "store"), lineage.Options{Durability: lineage.Normal})
		require.NoError(r, err)
		defer s.Close()
		rows := "" // of the database
		follow := func() {
			db, look := open(dir)
			_, err := (&project.Projector{Store: s, DB: db}).Run(bg)
			require.NoError(r, err)
			rows = look()
			require.NoError(r, db.Close())
			x, err := search.Open(bg, s, filepath.Join(dir, "store"), search.Options{})
			require.NoError(r, err)
			_, err = x.SearchMessages(bg, "c", "anything", chat.SearchOptions{})
			require.NoError(r, err)
			require.NoError(r, x.Close())
		}
		thread, err := s.CreateThread(bg, lineage.ThreadOptions{SourceID: "c", UserID: "ann", Keep: true})
		require.NoError(r, err)
		main, err := thread.Active(bg)
		require.NoError(r, err)
		kept, gone := &planted{t: r, name: "k"}, &planted{t: r, name: "g"}
		for range rapid.IntRange(1, 6).Draw(r, "messages") {
			_, err = main.Extend(bg, kept.item())
			require.NoError(r, err)
			_, err = main.Extend(bg, gone.item())
			require.NoError(r, err)
			if rapid.Bool().Draw(r, "followed before") {
				follow()
			}
		}
		follow()
		before := append(feedOf(r, s), bytesBelow(r, dir)...)
		for _, token := range append(kept.tokens, gone.tokens...) {
			require.True(r, bytes.Contains(before, []byte(token)), token)
		}
		entries, err := main.All(bg)
		require.NoError(r, err)
		for i, e := range entries {
			if i%2 == 1 {
				for _, id := range e.Contents() {
					require.NoError(r, s.Erase(bg, id))
				}
			}
		}
		_, err = s.Collect(bg, lineage.CollectOptions{KeepReflog: -1, KeepUnused: -1})
		require.NoError(r, err)
		follow()
		files, records := string(bytesBelow(r, dir)), string(feedOf(r, s))
		for _, token := range gone.tokens {
			require.False(r, strings.Contains(rows, token) || strings.Contains(rows, hex.EncodeToString([]byte(token))), "rows have "+token)
			require.False(r, strings.Contains(files, token), "files have "+token)
			require.False(r, strings.Contains(records, token), "records have "+token)
		}
		for _, token := range kept.tokens {
			require.True(r, strings.Contains(records, token), token)
		}
	})
}
