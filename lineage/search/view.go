package search

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/lineage-store/lineage/internal/derivedfile"
	"github.com/lineage-store/lineage/internal/query"
	"github.com/lineage-store/lineage/internal/searched"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/structure"
)

// fileView is one state of a file, as a transaction of a connection sees it. It implements searched.View.
type fileView struct{ conn *sql.Conn }

// inScope is the condition of the scope for threads h. ?1 is a thread, ?2 a user.
func inScope(s *searched.Scope) string {
	conditions := []string{`TRUE`}
	if !s.Thread.IsZero() {
		conditions = append(conditions, `h.id = ?1`)
	}
	if s.User != "" {
		conditions = append(conditions, `h.user = ?2`)
	}
	if s.Listed {
		conditions = append(conditions, `h.id IN temp.among`)
	}
	return strings.Join(conditions, ` AND `)
}

// visible returns the join and the condition that restrict usages u to the scope, and the arguments of
// the condition.
func visible(s *searched.Scope) (scope, roles string, args []any) {
	scope = `CROSS JOIN runs s ON s.number = u.run AND u.seq <= s.reached`
	if s.Restricted() {
		scope = `CROSS JOIN temp.scope s ON s.run = u.run AND u.seq <= s.upto`
	}
	if len(s.Roles) > 0 {
		roles = ` AND u.role IN (SELECT number FROM roles WHERE kind = ? AND name IN (?` + strings.Repeat(", ?", len(s.Roles)-1) + `))`
		args = append(args, int(structure.MessageUsage))
		for _, r := range s.Roles {
			args = append(args, r)
		}
	} else if s.NoSummaries {
		roles, args = ` AND u.role NOT IN (SELECT number FROM roles WHERE kind = ?)`, []any{int(searched.Summary)}
	}
	return scope, roles, args
}

// enter determines how far the threads in scope see each run.
func (v *fileView) enter(ctx context.Context, s *searched.Scope) error {
	if !s.Restricted() {
		return nil
	}
	statements := []string{`CREATE TEMP TABLE IF NOT EXISTS scope (run INTEGER PRIMARY KEY, upto INTEGER NOT NULL)`, `DELETE FROM temp.scope`}
	if s.Listed {
		statements = append(statements, `CREATE TEMP TABLE IF NOT EXISTS among (id BLOB PRIMARY KEY) WITHOUT ROWID`, `DELETE FROM temp.among`)
	}
	for _, statement := range statements {
		if _, err := v.conn.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	for _, id := range s.Among {
		if _, err := v.conn.ExecContext(ctx, `INSERT OR IGNORE INTO temp.among VALUES (?1)`, id[:]); err != nil {
			return err
		}
	}
	_, err := v.conn.ExecContext(ctx, `INSERT INTO temp.scope `+runsInScope(s), s.Thread[:], s.User, int64(derivedfile.Forever))
	return err
}

// runsInScope is a query for the runs that the threads in a scope see, and up to which steps.
func runsInScope(s *searched.Scope) string {
	condition := inScope(s)
	return `WITH RECURSIVE seen (run, upto) AS (
			SELECT p.run, p.seq FROM threads h JOIN tips p ON p.thread = h.number WHERE ` + condition + `
			UNION SELECT r.number, ?3 FROM threads h JOIN runs r ON r.thread = h.number AND r.thread > 0 WHERE ` + condition + ` AND h.keeps
			UNION SELECT r.parent, r.after FROM seen JOIN runs r ON r.number = seen.run WHERE r.parent > 0)
		SELECT run, MAX(upto) FROM seen GROUP BY run`
}

// Find implements searched.View.
func (v *fileView) Find(ctx context.Context, s *searched.Scope, leaves []query.Leaf, _ query.Condition, into searched.Collector) (steps int, err error) {
	into.Reset()
	scope, roles, wanted := visible(s)
	statement, args, err := occurrences(leaves, scope, roles, wanted)
	if err != nil {
		return 0, err
	}
	err = derivedfile.Each(ctx, v.conn, func(scan func(...any) error) error {
		var step, head, text, leaf, at int64
		if err := scan(&step, &head, &text, &leaf, &at); err != nil {
			return fmt.Errorf("%w: %w", derivedfile.ErrUseless, err)
		}
		if at < 0 || at >= searched.MaxWords {
			return fmt.Errorf("word %d of a text: %w", at, derivedfile.ErrUseless)
		}
		const low = 1<<32 - 1
		into.Add(searched.Occurrence{
			Address: searched.Address{Run: step >> 32, Seq: step & low, Head: int(head >> 32), Role: text & low},
			Text:    text >> 32, Words: head & low, Leaf: int32(leaf), At: int32(at),
		})
		return nil
	}, statement, args...)
	if err != nil {
		return 0, err
	}
	statement = `SELECT spans FROM meta`
	if s.Restricted() {
		statement = `SELECT IFNULL(SUM(MIN(s.upto, r.last)), 0) FROM temp.scope s JOIN runs r ON r.number = s.run`
	}
	err = v.conn.QueryRowContext(ctx, statement).Scan(&steps)
	return steps, err
}

// occurrences returns the statement that reads the occurrences of leaves, and its arguments. scope, roles and wanted are those
// of visible. Reading a column costs as much as finding its row, so columns are combined. Numbers in a search index are below
// 1<<31.
func occurrences(leaves []query.Leaf, scope, roles string, wanted []any) (statement string, args []any, err error) {
	exact, prefixes := make(map[string]string), make(map[string]string) // terms by the numbers of their leaves
	for i, leaf := range leaves {
		if leaf.Prefix {
			prefixes[strconv.Itoa(i)] = leaf.Term
		} else {
			exact[strconv.Itoa(i)] = leaf.Term
		}
	}
	var parts []string
	for _, limit := range []struct {
		terms     map[string]string
		condition string
	}{{exact, `v.term = l.value`}, {prefixes, `v.term >= l.value AND v.term < l.value || char(0x10ffff)`}} {
		if len(limit.terms) == 0 {
			continue
		}
		terms, err := json.Marshal(limit.terms)
		if err != nil {
			return "", nil, err
		}
		parts = append(parts, `SELECT u.run << 32 | u.seq, u.head << 32 | u.words, u.text << 32 | u.role, CAST(l.key AS INTEGER), v.offset
			FROM json_each(?) l CROSS JOIN places v ON `+limit.condition+` CROSS JOIN usages u ON u.text = v.doc `+scope+` WHERE TRUE`+roles)
		args = append(append(args, string(terms)), wanted...)
	}
	return strings.Join(parts, ` UNION ALL `) + ` ORDER BY 1, 2`, args, nil
}

// Locations implements searched.View.
func (v *fileView) Locations(ctx context.Context, s *searched.Scope, addresses []searched.Address) ([]searched.Location, error) {
	locations := make([]searched.Location, len(addresses))
	for i, a := range addresses {
		p := &locations[i]
		var key []byte
		err := v.conn.QueryRowContext(ctx, `SELECT r.id, o.kind FROM runs r, roles o WHERE r.number = ? AND o.number = ?`, a.Run, a.Role).Scan(&key, &p.Kind)
		if err != nil {
			return nil, fmt.Errorf("run %d: %w: %w", a.Run, derivedfile.ErrUseless, err)
		}
		if p.Run, p.Owner, err = runOf(key, p.Kind); err != nil {
			return nil, err
		}
		if err := v.seenBy(ctx, s, a, p); err != nil {
			return nil, err
		}
	}
	return locations, nil
}

// runOf returns the run with a key, or the summary and its context.
func runOf(key []byte, kind structure.UsageKind) (id structure.RunID, context structure.ContextID, err error) {
	if kind != searched.Summary && len(key) == len(id) {
		return structure.RunID(key), context, nil
	}
	context, summary, ok := searched.SummaryOf(key)
	if !ok || kind != searched.Summary {
		err = fmt.Errorf("run %x: %w", key, derivedfile.ErrUseless)
	}
	return structure.RunID(summary), context, err
}

// seenBy sets the threads and contexts in scope that see an address.
func (v *fileView) seenBy(ctx context.Context, s *searched.Scope, a searched.Address, p *searched.Location) error {
	if !s.Thread.IsZero() {
		p.Threads = []lineage.ThreadID{s.Thread}
		return nil
	}
	contexts := make(map[lineage.ContextID]bool)
	condition := `TRUE`
	if s.Restricted() {
		condition = inScope(s)
	}
	return derivedfile.Each(ctx, v.conn, func(scan func(...any) error) error {
		var thread, id, owner []byte
		if err := scan(&thread, &id, &owner); err != nil {
			return fmt.Errorf("%w: %w", derivedfile.ErrUseless, err)
		}
		if context, ok := searched.SummarizedIn(owner); ok {
			id = context[:]
		}
		switch {
		case len(thread) == 16:
			if n := len(p.Threads); n == 0 || p.Threads[n-1] != lineage.ThreadID(thread) {
				p.Threads = append(p.Threads, lineage.ThreadID(thread))
			}
		case len(id) == 16 && !contexts[lineage.ContextID(id)]:
			contexts[lineage.ContextID(id)] = true
			p.Contexts = append(p.Contexts, lineage.ContextID(id))
		}
		return nil
	}, `WITH RECURSIVE behind (run, seq) AS (
			SELECT ?3, ?4
			UNION SELECT r.number, 0 FROM behind b JOIN runs r ON r.parent = b.run AND r.parent > 0 AND r.after >= b.seq WHERE r.reached > 0),
		seen (thread, id, of) AS (
			SELECT p.thread, CASE WHEN p.thread = 0 THEN p.id END, CASE WHEN p.thread = 0 THEN p.of END
			FROM behind b CROSS JOIN tips p ON p.run = b.run AND p.seq >= b.seq
			UNION SELECT r.thread, NULL, NULL FROM behind b CROSS JOIN runs r ON r.number = b.run JOIN threads h ON h.number = r.thread AND h.keeps)
		SELECT h.id, s.id, s.of FROM seen s LEFT JOIN threads h ON h.number = s.thread
		WHERE `+condition+` ORDER BY s.thread, s.id`, s.Thread[:], s.User, a.Run, a.Seq)
}
