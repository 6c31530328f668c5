package bench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/sqladapter/sqlite"
)

// sqliteSystem is the documented schema on SQLite, used well: prepared statements, one transaction
// per step, the documented settings, ids cached by the program, full-text index maintained.
func sqliteSystem(durability string) system {
	return system{name: nameSQLite, durability: durability, open: func(ctx context.Context, dir string) (store, error) {
		s := newSQLiteStore(dir, durability)
		return s, s.open(ctx, sqlite.Dialect{}.Migrations()[0].Documented)
	}}
}

func newSQLiteStore(dir, durability string) *sqlStore {
	s := &sqlStore{dir: dir, driver: "sqlite", one: true, mark: func(int) string { return "?" }, textRow: sqliteText}
	synchronous := "FULL"
	if durability == normal {
		synchronous = "NORMAL"
	}
	s.address = "file:" + filepath.Join(dir, "chats.db") + "?_txlock=immediate" +
		"&_pragma=journal_mode(WAL)&_pragma=synchronous(" + synchronous + ")&_pragma=cache_size(-64000)" +
		"&_pragma=temp_store(MEMORY)&_pragma=mmap_size(268435456)&_pragma=foreign_keys(ON)&_pragma=busy_timeout(10000)"
	return s
}

const (
	sqliteText   = `INSERT INTO messages_fts (messageId, chatId, name, content) VALUES (?, ?, ?, ?)`
	postgresText = sqliteText
)

type sqlStore struct {
	dir     string
	driver  string
	address string
	schema  *schema // of Postgres, dropped at the end
	// bulk inserts many messages, if there is a faster way than row by row.
	bulk    func(ctx context.Context, h *sqlHistory, messages [][]byte) error
	mark    func(n int) string // the n-th parameter, from 1
	textRow string
	noText  bool // leave the full text out
	db      *sql.DB
	next    atomic.Int64
	// one is set if only one connection can write at a time: waiting here is faster than in the
	// database and does not starve.
	one     bool
	writing sync.Mutex

	message, text, head, touch, branch, chat, chain *sql.Stmt
}

func (s *sqlStore) open(ctx context.Context, ddl string) (err error) {
	if s.db, err = sql.Open(s.driver, s.address); err != nil {
		return err
	}
	if s.driver == "sqlite" {
		s.db.SetMaxOpenConns(4)
	}
	if ddl != "" {
		if _, err := s.db.ExecContext(ctx, ddl); err != nil {
			return fmt.Errorf("make the documented tables: %w", err)
		}
	}
	for _, p := range []struct {
		to    **sql.Stmt
		query string
	}{
		{&s.message, `INSERT INTO messages (id, chatId, parentId, name, type, data, createdAt) VALUES (?, ?, ?, ?, 'message', ?, ?)`},
		{&s.text, s.textRow},
		{&s.head, `UPDATE branches SET headMessageId = ? WHERE id = ?`},
		{&s.touch, `UPDATE chats SET updatedAt = ? WHERE id = ?`},
		{&s.branch, `INSERT INTO branches (id, chatId, name, headMessageId, createdAt) VALUES (?, ?, ?, ?, 0)`},
		{&s.chat, `INSERT INTO chats (id, userId) VALUES (?, 'bench')`},
		{&s.chain, `WITH RECURSIVE chain(id, parentId, data, depth) AS (
			SELECT id, parentId, data, 0 FROM messages WHERE id = ?
			UNION ALL
			SELECT m.id, m.parentId, m.data, c.depth + 1 FROM messages m JOIN chain c ON m.id = c.parentId WHERE c.depth + 1 < ?
		) SELECT data FROM chain ORDER BY depth DESC`},
	} {
		if *p.to, err = s.db.PrepareContext(ctx, s.marked(p.query)); err != nil {
			return fmt.Errorf("prepare %s: %w", p.query, err)
		}
	}
	return nil
}

// marked replaces the parameters of a statement by those of its database.
func (s *sqlStore) marked(query string) string {
	var b strings.Builder
	n := 0
	for _, r := range query {
		if r == '?' {
			n++
			b.WriteString(s.mark(n))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func (s *sqlStore) id(kind string) string {
	return kind + strconv.FormatInt(s.next.Add(1), 10)
}

func (s *sqlStore) start(ctx context.Context) (history, error) {
	h := &sqlHistory{store: s, chat: s.id("chat"), branch: s.id("branch")}
	if _, err := s.chat.ExecContext(ctx, h.chat); err != nil {
		return nil, err
	}
	_, err := s.branch.ExecContext(ctx, h.branch, h.chat, h.branch, nil)
	return h, err
}

func (s *sqlStore) size() (int64, error) {
	if s.schema == nil {
		return diskUse(s.dir)
	}
	return s.schema.size()
}

func (s *sqlStore) close() error {
	err := s.db.Close()
	if s.schema != nil {
		err = errors.Join(err, s.schema.drop())
	}
	return err
}

func (s *sqlStore) shut() error { return s.db.Close() }

func (s *sqlStore) openAgain(ctx context.Context) error { return s.open(ctx, "") }

type sqlHistory struct {
	store        *sqlStore
	chat, branch string
	ids          []string // of its messages, cached by the program
}

// sqlRow is a message to append to a history.
type sqlRow struct {
	in   *sqlHistory
	role string
	text []byte
}

// insert inserts rows and updates the heads in one transaction.
func (s *sqlStore) insert(ctx context.Context, rows []sqlRow) error {
	if s.one {
		s.writing.Lock()
		defer s.writing.Unlock()
	}
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it does nothing
	message, text := tx.StmtContext(ctx, s.message), tx.StmtContext(ctx, s.text)
	ids := make(map[*sqlHistory][]string)
	for _, row := range rows {
		known, ok := ids[row.in]
		if !ok {
			known = row.in.ids
		}
		id := s.id("m")
		var parent any
		if len(known) > 0 {
			parent = known[len(known)-1]
		}
		if _, err := message.ExecContext(ctx, id, row.in.chat, parent, row.role, string(messageJSON(id, row.role, row.text)), s.next.Load()); err != nil {
			return err
		}
		if !s.noText {
			if _, err := text.ExecContext(ctx, id, row.in.chat, row.role, string(row.text)); err != nil {
				return err
			}
		}
		ids[row.in] = append(known, id)
	}
	head, touch := tx.StmtContext(ctx, s.head), tx.StmtContext(ctx, s.touch)
	for h, known := range ids {
		if _, err := head.ExecContext(ctx, known[len(known)-1], h.branch); err != nil {
			return err
		}
		if _, err := touch.ExecContext(ctx, s.next.Load(), h.chat); err != nil {
			return err
		}
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	for h, known := range ids {
		h.ids = known
	}
	return nil
}

// insertConversation inserts a conversation of an archive with its branches.
func (s *sqlStore) insertConversation(ctx context.Context, c *archive.Conversation) error {
	h, err := s.start(ctx)
	if err != nil {
		return err
	}
	chat := h.(*sqlHistory)
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it does nothing
	message, text := tx.StmtContext(ctx, s.message), tx.StmtContext(ctx, s.text)
	rows := make(map[string]string, len(c.Nodes)) // node id → row id
	last := ""
	insert := func(n *archive.Node) error {
		id := s.id("m")
		parent := last
		if n.Root {
			parent = ""
		}
		if n.Parent != "" {
			parent = rows[n.Parent]
		}
		if _, err := message.ExecContext(ctx, id, chat.chat, sql.NullString{String: parent, Valid: parent != ""}, n.Role,
			string(messageJSON(id, n.Role, n.Body)), n.Created.UnixMilli()); err != nil {
			return err
		}
		if _, err := text.ExecContext(ctx, id, chat.chat, n.Role, string(n.Body)); err != nil {
			return err
		}
		last = id
		if n.ID != "" {
			rows[n.ID] = id
		}
		return nil
	}
	for nodes := range c.Parts() {
		for i := range nodes {
			if err := insert(&nodes[i]); err != nil {
				return err
			}
		}
	}
	if last != "" {
		if _, err := tx.StmtContext(ctx, s.head).ExecContext(ctx, last, chat.branch); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func (h *sqlHistory) add(ctx context.Context, messages ...[]byte) error {
	rows := make([]sqlRow, len(messages))
	for i, m := range messages {
		rows[i] = sqlRow{h, roleOf(len(h.ids) + i), m}
	}
	return h.store.insert(ctx, rows)
}

func (h *sqlHistory) extend(ctx context.Context, message []byte) error { return h.add(ctx, message) }

func (h *sqlHistory) load(ctx context.Context, messages [][]byte) error {
	if h.store.bulk != nil {
		return h.store.bulk(ctx, h, messages)
	}
	for batch := range slices.Chunk(messages, 10_000) {
		if err := h.add(ctx, batch...); err != nil {
			return err
		}
	}
	return nil
}

func (h *sqlHistory) fork(ctx context.Context, n int) (history, error) {
	if n == 0 {
		n = len(h.ids)
	}
	f := &sqlHistory{store: h.store, chat: h.chat, branch: h.store.id("branch"), ids: h.ids[:n:n]}
	var head any
	if n > 0 {
		head = h.ids[n-1]
	}
	_, err := h.store.branch.ExecContext(ctx, f.branch, f.chat, f.branch, head)
	return f, err
}

func (h *sqlHistory) read(ctx context.Context, last int) (int, error) {
	if len(h.ids) == 0 {
		return 0, nil
	}
	if last == 0 {
		last = len(h.ids)
	}
	return rowsOf(ctx, h.store.chain, h.ids[len(h.ids)-1], last)
}

// rowsOf reads the rows of a query with one column, and returns their number.
func rowsOf(ctx context.Context, query *sql.Stmt, args ...any) (n int, err error) {
	rows, err := query.QueryContext(ctx, args...)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	var data sql.RawBytes
	for rows.Next() {
		if err := rows.Scan(&data); err != nil {
			return n, err
		}
		n++
	}
	return n, rows.Err()
}
