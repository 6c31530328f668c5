package archives

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/archive"
)

// agentDatabase describes how an agent stores its sessions in a database: in a table of sessions, where a subagent's
// session has a parent, and a table of messages.
type agentDatabase struct {
	agent string
	// sessions are the tables of sessions, in order of precedence. Their rows have an "id". A session in an earlier
	// table is not read from a later one.
	sessions []table
	// parent is the column of a session table that holds the id of the session that started a subagent.
	parent string
	// session takes title, times and metadata from a row of a session table.
	session func(ctx context.Context, s *agentSession, v row) error
	// messages are the tables of messages. A session is read from the first table that has any of its rows.
	messages []messageTable
	// rows is set if the rows that were kept of a session (Conversation.Rows) can be read in place of the database.
	rows bool
	// more, if not nil, reads the other data of a session, after its messages.
	more func(ctx context.Context, s *agentSession, id any) error
}

// table is a table and the columns to read. A database without the needed columns does not have the table.
type table struct {
	name            string
	needed, columns []string
}

// messageTable is a table of messages. Its rows have an "id" and a "session_id".
type messageTable struct {
	table
	// order lists the columns to sort messages by; missing columns are skipped. "rowid" is the order of insertion.
	order []string
	// message converts a row to a node. A node without a body is left out. The caller sets its parent and position.
	message func(ctx context.Context, s *agentSession, v row) (archive.Node, error)
}

// column returns a qualified column name for SQL.
func (t *table) column(name string) string { return quoted(t.name) + "." + quoted(name) }

// in reports whether the database has the table.
func (t *table) in(db *database) bool { return db.has(t.name, t.needed...) }

// readAgent reads the database of an agent.
func readAgent(ctx context.Context, in *archive.Input, agent *agentDatabase) conversations {
	return func(yield func(*archive.Conversation, error) bool) {
		open := openDatabase
		if agent.rows && in.DiskPath() == "" && rawjson.IsObject(in.Head().Bytes) {
			open = openRows
		}
		db, done, err := open(ctx, in)
		if err != nil {
			yield(nil, whole(ctx, in, err))
			return
		}
		defer done()
		r := agentReader{reader: reader{database: db, in: in, yield: yield}, agent: agent}
		for i := range agent.sessions {
			if t := &agent.sessions[i]; t.in(db) {
				r.sessions = append(r.sessions, t)
			}
		}
		for i := range agent.messages {
			if t := &agent.messages[i]; t.in(db) {
				r.messages = append(r.messages, t)
			}
		}
		if len(r.sessions) == 0 || len(r.messages) == 0 {
			why := archive.ErrMalformed
			if in.WantsRows() { // a follower may see it before its program has made them
				why = archive.ErrNoMessages
			}
			err = fmt.Errorf("%w: no tables of sessions and messages", why)
		}
		for i := 0; err == nil && i < len(r.sessions); i++ {
			err = r.roots(ctx, i)
		}
		r.end(ctx, err)
	}
}

// agentReader reads the database of an agent.
type agentReader struct {
	reader
	agent *agentDatabase
	// sessions and messages are the tables that exist in this database.
	sessions []*table
	messages []*messageTable
}

// agentSession is a session being read, with its subagents.
type agentSession struct {
	partCollector
	r     *agentReader
	table *table
	// about is the metadata of the conversation.
	about fields
	// aside names the branch of the subagent being read; it is empty for the session itself. last is the id of the
	// previous message.
	aside, last string
	// model is the session's model, for agents whose messages do not name theirs.
	model string
	// started maps a subagent's session to the message that started it, calls only if that is a message of the session itself.
	started, calls map[string]string
	// children are the subagent sessions that the current message names.
	children []string
	logged   bool             // the log has begun
	at       archive.Position // of the message being read
	// unfinished is set if the program may still be writing the message being read. changed is when it was last changed. waiting is
	// such a message until another one follows it, nil if there is none.
	unfinished bool
	changed    time.Time
	waiting    *archive.Node
	// held is set if the last message of the session was left out: see archive.ReadOptions.Hold.
	held bool
}

// roots reads the sessions in a table that were not started by another session.
func (r *agentReader) roots(ctx context.Context, i int) error {
	t := r.sessions[i]
	var conditions []string
	if r.has(t.name, r.agent.parent) {
		conditions = append(conditions, fmt.Sprintf(`(%[1]s IS NULL OR %[1]s NOT IN (SELECT id FROM %[2]s))`, t.column(r.agent.parent), quoted(t.name)))
	}
	for _, before := range r.sessions[:i] {
		conditions = append(conditions, t.column("id")+` NOT IN (SELECT id FROM `+quoted(before.name)+`)`)
	}
	query := `SELECT ` + r.columns(t) + ` FROM ` + quoted(t.name)
	if conditions != nil {
		query += ` WHERE ` + strings.Join(conditions, ` AND `)
	}
	return r.eachItem(ctx, query+` ORDER BY `+t.column("id"), nil, func(v row) error {
		id := v.text("id")
		at := r.next("session " + id)
		if err := r.takeRow(v); err != nil {
			return r.skip(ctx, at, err)
		}
		s := &agentSession{partCollector: partCollector{Conversation: &archive.Conversation{SourceID: id}, r: &r.reader}, r: r, table: t, started: make(map[string]string), calls: make(map[string]string)}
		s.about = fields{{archive.KeyAgent, r.agent.agent}}
		if err := r.agent.session(ctx, s, v); err != nil {
			return r.skip(ctx, at, err)
		}
		s.Metadata = appendJSON(nil, s.about)
		s.keep(t.name, v)
		err := r.content(ctx, s, v["id"])
		if err == nil {
			err = r.subagents(ctx, s, v["id"], 0)
		}
		if err != nil {
			return err
		}
		return s.finish()
	})
}

// content reads the messages and other data of a session.
func (r *agentReader) content(ctx context.Context, s *agentSession, id any) error {
	if err := r.messagesOf(ctx, s, id); err != nil || r.agent.more == nil {
		return err
	}
	return r.agent.more(ctx, s, id)
}

// maxSubagents is how deeply subagents may be nested.
const maxSubagents = 16

// subagents reads the sessions that a session started.
func (r *agentReader) subagents(ctx context.Context, s *agentSession, parent any, depth int) error {
	t := s.table
	if depth == maxSubagents || !r.has(t.name, r.agent.parent) {
		return nil
	}
	var children []row
	r.begin()
	query := `SELECT ` + r.columns(t) + ` FROM ` + quoted(t.name) + ` WHERE ` + t.column(r.agent.parent) + ` = ? ORDER BY ` + t.column("id")
	err := r.each(ctx, query, []any{parent}, func(v row) error {
		children = append(children, v)
		return nil
	})
	if err != nil {
		return err
	}
	held := s.held
	for _, v := range children {
		if _, known := s.started[v.text("id")]; held && !known {
			continue // a message that was left out has started it
		}
		s.keep(t.name, v)
		s.aside = "agent " + v.text("id")
		if err := r.content(ctx, s, v["id"]); err != nil {
			return err
		}
		if err := r.subagents(ctx, s, v["id"], depth+1); err != nil {
			return err
		}
	}
	return nil
}

// tableOf returns the first table that has messages of a session, or else the last table.
func (r *agentReader) tableOf(ctx context.Context, session any) (t *messageTable, err error) {
	for _, t = range r.messages {
		found := false
		err := r.rows(ctx, 0, `SELECT 1 FROM `+quoted(t.name)+` WHERE session_id = ?2 LIMIT 1`, []any{session}, func(row) error {
			found = true
			return nil
		})
		if found || err != nil {
			return t, err
		}
	}
	return t, nil
}

// messagesOf reads the messages of a session.
func (r *agentReader) messagesOf(ctx context.Context, s *agentSession, id any) error {
	s.last, s.held = "", false
	t, err := r.tableOf(ctx, id)
	if err != nil {
		return err
	}
	var order []string
	for _, column := range t.order {
		if column == "rowid" || r.has(t.name, column) {
			order = append(order, t.column(column))
		}
	}
	query := `SELECT ` + r.columns(&t.table) + ` FROM ` + quoted(t.name) + ` WHERE session_id = ? ORDER BY ` + strings.Join(order, ", ")
	err = r.eachItem(ctx, query, []any{id}, func(v row) error {
		at := r.next("message " + v.text("id"))
		if err := r.takeRow(v); err != nil {
			return r.skip(ctx, at, err)
		}
		s.keep(t.name, v)
		if err := s.message(ctx, t, v, at); err != nil {
			if err := r.skip(ctx, at, err); err != nil {
				return err
			}
		}
		return s.flush()
	})
	if s.waiting != nil {
		if s.held = r.in.Holds(s.changed, false); s.held {
			for _, started := range []map[string]string{s.started, s.calls} {
				maps.DeleteFunc(started, func(_, by string) bool { return by == s.waiting.ID })
			}
			s.waiting = nil
		}
		s.addWaiting()
	}
	return err
}

// addWaiting adds the message that waits.
func (s *agentSession) addWaiting() {
	if s.waiting != nil {
		s.add(*s.waiting)
		s.waiting = nil
	}
}

// writing records that the program may still be writing the message being read, and when it last changed it.
func (s *agentSession) writing(changed time.Time) { s.unfinished, s.changed = true, changed }

// message reads one message.
func (s *agentSession) message(ctx context.Context, t *messageTable, v row, at archive.Position) error {
	s.children, s.at, s.unfinished = s.children[:0], at, false
	n, err := t.message(ctx, s, v)
	if err != nil || n.Body == nil {
		return err
	}
	if n.ID == "" {
		return fmt.Errorf("%w: it has no id", archive.ErrMalformed)
	}
	if n.Role == "" {
		n.Role = "unknown"
	}
	n.Parent, n.Aside, n.At = s.last, s.aside, at
	if s.last == "" {
		n.Parent = s.calls[strings.TrimPrefix(s.aside, "agent ")]
		n.Root = n.Parent == ""
	}
	for _, child := range s.children {
		if _, known := s.started[child]; !known {
			s.started[child] = n.ID
		}
		if _, known := s.calls[child]; !known && s.aside == "" {
			s.calls[child] = n.ID
		}
	}
	s.last = n.ID
	s.addWaiting()
	if s.unfinished {
		s.waiting = &n
		return nil
	}
	s.add(n)
	return nil
}

// starts records that the message being read started a subagent with the given session.
func (s *agentSession) starts(session string) {
	if session != "" {
		s.children = append(s.children, session)
	}
}

// state adds a member to the metadata, unless the value is empty.
func (s *agentSession) state(key, value string) {
	if value != "" {
		s.about = append(s.about, field{key, cleanText([]byte(value))})
	}
}

// count adds a number to the metadata, unless it is zero.
func (s *agentSession) count(key string, v any) {
	if n := counted(v); n != nil && n != json.Number("0") {
		s.about = append(s.about, field{key, n})
	}
}

// counted returns a number as JSON, or nil if v is not a number.
func counted(v any) any {
	switch v := v.(type) {
	case int64:
		return json.Number(strconv.FormatInt(v, 10))
	case float64:
		return number(v)
	}
	return nil
}

// log adds a record that is not a message to the log.
func (s *agentSession) log(id, role string, body []byte, created time.Time, at archive.Position) {
	s.add(archive.Node{ID: id, Role: role, Type: "application/json", Body: body, Created: created, Aside: "log", Root: !s.logged, At: at})
	s.logged = true
}

// keep keeps a row, if the caller asked for rows.
func (s *agentSession) keep(table string, v row) {
	if s.r.in.WantsRows() {
		id := cleanText([]byte(v.text("id")))
		kept := archive.Row{Key: table + " " + id, JSON: rowJSON(table, id, s.r.tables[table], v)}
		s.Rows, s.bytes = append(s.Rows, kept), s.bytes+len(kept.JSON)
	}
}

// columns returns the columns of a table to select, as SQL: the wanted ones, or all if the caller asked for rows.
func (r *agentReader) columns(t *table) string {
	if r.in.WantsRows() {
		return r.list(t.name, r.tables[t.name]...)
	}
	return r.list(t.name, append(append([]string(nil), t.needed...), t.columns...)...)
}

// agentTime parses a time: seconds or milliseconds since 1970, or a text as SQLite writes it.
func agentTime(v any) time.Time {
	switch v := v.(type) {
	case int64:
		if v > 0 && v < 1e11 {
			v *= 1000
		}
		if v <= 0 || v > 253402300799999 {
			return time.Time{}
		}
		return time.UnixMilli(v).UTC()
	case float64:
		if v > 0 && v < 1e15 && !math.IsNaN(v) {
			return agentTime(int64(v))
		}
	case string:
		for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999", "2006-01-02 15:04:05.999999999-07:00"} {
			if t, err := time.Parse(layout, v); err == nil && t.Year() >= 1 && t.Year() <= 9999 {
				return t.UTC().Truncate(time.Millisecond)
			}
		}
	}
	return time.Time{}
}
