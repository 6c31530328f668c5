package importing

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/internal/lists"
	"github.com/lineage-store/lineage/structure"
)

var contextSQL = struct {
	ofThread, inherited sqladapter.Statement
}{
	ofThread: `SELECT "id", "parent_context_id", "base_span_id", "tip_span_id", "system_prompt_override", "model_override", ` +
		`"overrides", "metadata", "branch_id", "created_at" FROM "contexts" WHERE "thread_id" = ? AND "remnant" = 0 ORDER BY "created_at", "id"`,
	inherited: `SELECT "id", "parent_context_id", "base_span_id", "tip_span_id", "system_prompt_override", "model_override", ` +
		`"overrides", "metadata", "branch_id", "created_at" FROM "contexts" WHERE "id" = ?`,
}

// storedContext is a row of contexts.
type storedContext struct {
	id                  string
	parent, base, tip   sql.NullString
	prompt, model, json sql.NullString
	metadata, branch    sql.NullString
	createdAt           int64
}

func scanContext(rows *sqladapter.Rows) (storedContext, error) {
	var c storedContext
	err := rows.Scan(&c.id, &c.parent, &c.base, &c.tip, &c.prompt, &c.model, &c.json, &c.metadata, &c.branch, &c.createdAt)
	return c, err
}

// context returns the context without its thread and base.
func (row *storedContext) context() (c write.Context, err error) {
	c.CreatedAt = time.UnixMilli(row.createdAt).UTC()
	if c.ID, err = structure.ParseID[lineage.ContextID](row.id); err != nil {
		return c, err
	}
	if row.parent.Valid {
		if c.Parent, err = structure.ParseID[lineage.ContextID](row.parent.String); err != nil {
			return c, err
		}
	}
	if row.prompt.Valid {
		c.Overrides.SystemPrompt = &row.prompt.String
	}
	if row.model.Valid {
		c.Overrides.Model = &row.model.String
	}
	if row.json.Valid {
		c.Overrides.JSON = []byte(row.json.String)
	}
	if row.metadata.Valid {
		c.Metadata = []byte(row.metadata.String)
	}
	return c, nil
}

// inherited returns the overrides that forks inherit from a context or remnant in the database, nil if there is
// neither.
func (s *importedChat) inherited(ctx context.Context, id structure.ContextID) (*structure.Remnant, error) {
	rows, err := lists.ReadAll(ctx, s.db, scanContext, contextSQL.inherited, id.String())
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	c, err := rows[0].context()
	return c.Remnant(), err
}

// importContexts imports the contexts of the chat, and reports whether anything changed.
func (s *importedChat) importContexts(ctx context.Context, store *lineage.Store, rows []storedContext) (changed bool, err error) {
	for i := range rows {
		new, err := s.importContext(ctx, store, &rows[i])
		changed = changed || new
		switch {
		case isContextProblem(err):
			s.problem(fmt.Errorf("context %s: %w", rows[i].id, err))
		case err != nil:
			return changed, err
		}
	}
	return changed, nil
}

// isContextProblem reports whether an error is about one context only, so that others can be imported.
func isContextProblem(err error) bool {
	return errors.Is(err, chat.ErrNotFound) || errors.Is(err, chat.ErrOtherChat) || errors.Is(err, structure.ErrBadID) ||
		errors.Is(err, lineage.ErrConflict) || errors.Is(err, lineage.ErrExists)
}

// branchContext returns a function that creates the contexts of new branches of the chat. A branch that another
// program added has no context.
func (s *importedChat) branchContext(rows []storedContext) func(context.Context, *lineage.Store, chat.Branch) (structure.ContextID, error) {
	contexts := make(map[string]*storedContext)
	for i := range rows {
		if rows[i].branch.Valid {
			contexts[rows[i].branch.String] = &rows[i]
		}
	}
	return func(ctx context.Context, tx *lineage.Store, b chat.Branch) (structure.ContextID, error) {
		row := contexts[b.ID]
		if row == nil {
			return structure.ContextID{}, nil
		}
		l, err := s.loadingContext(ctx, row)
		if err == nil {
			err = l.load(ctx, tx)
		}
		if isContextProblem(err) { // importContexts reports it
			return structure.ContextID{}, nil
		}
		return l.context.ID, err
	}
}

// contextLoading is a context to import. It began at one message of a chat and points to another.
type contextLoading struct {
	chatID    string
	context   write.Context
	base, tip chat.Ref
	// inherited returns the overrides that forks inherit from a context in the database, nil if there is none.
	inherited func(context.Context, structure.ContextID) (*structure.Remnant, error)
}

// importContext imports a context, and reports whether anything changed.
func (s *importedChat) importContext(ctx context.Context, store *lineage.Store, row *storedContext) (changed bool, err error) {
	l, err := s.loadingContext(ctx, row)
	if err != nil {
		return false, err
	}
	return l.into(ctx, store)
}

// into adds the context to a store, and reports whether anything changed.
func (l *contextLoading) into(ctx context.Context, store *lineage.Store) (changed bool, err error) {
	t, _, err := chat.Spans(ctx, store, l.chatID)
	if err != nil {
		return false, err
	}
	return loadAt(ctx, store, t.UpdatedAt, func(tx *lineage.Store) error { return l.load(ctx, tx) }) // the import does not change the update time of the chat
}

// loadingContext returns the context of a row.
func (s *importedChat) loadingContext(ctx context.Context, row *storedContext) (*contextLoading, error) {
	c, err := row.context()
	l := &contextLoading{chatID: s.chatID, context: c, inherited: s.inherited}
	if err != nil {
		return l, err
	}
	if l.tip, err = s.messageAt(ctx, row.tip); err != nil {
		return l, err
	}
	l.base, err = s.messageAt(ctx, row.base)
	if errors.Is(err, chat.ErrNotFound) {
		l.base, err = l.tip, nil // the tip has moved away, and the base is not in any history of the chat
	}
	return l, err
}

// load adds the context in a transaction. A context in the store gets overrides only if it has none, and its tip only
// moves forward.
func (l *contextLoading) load(ctx context.Context, tx *lineage.Store) error {
	t, at, err := chat.Spans(ctx, tx, l.chatID, l.base, l.tip)
	if err != nil {
		return err
	}
	c, tip := l.context, at[1]
	c.Thread, c.At = t.ID, at[0]
	writer := write.Of(tx)
	known, err := writer.Engine().Context(ctx, c.ID)
	if errors.Is(err, lineage.ErrNotFound) {
		_, err = writer.Make(ctx, func(b *write.Batch, _ write.Try) error {
			if err := l.stateParents(ctx, writer.Engine(), b, &c); err != nil {
				return err
			}
			if b.NewContext(c); tip != c.At {
				b.Point(c.ID, tip)
			}
			return nil
		})
		return err
	}
	if err == nil && known.Thread != c.Thread {
		err = &chat.Error{Subject: "context", ID: c.ID.String(), Err: chat.ErrOtherChat}
	}
	if err != nil {
		return err
	}
	forward, err := structure.IsAncestor(known.Tip, tip, backend.Runs(ctx, writer.Engine()))
	if err != nil {
		return err
	}
	_, err = writer.Make(ctx, func(b *write.Batch, _ write.Try) error {
		if known.Overrides.IsZero() && !c.Overrides.IsZero() {
			now := known.Context
			now.Overrides = c.Overrides // overrides need not be JSON
			b.StateContext(now)
		}
		if forward && tip != known.Tip {
			b.Expect(c.ID, known.Tip)
			b.Point(c.ID, tip)
		}
		return nil
	})
	return err
}

// stateParents adds remnants for the ancestors of a new context, the topmost first. An ancestor that the store does
// not have was deleted, is not imported, or is imported later and then replaces its remnant.
func (l *contextLoading) stateParents(ctx context.Context, from backend.Reader, b *write.Batch, c *write.Context) error {
	own, err := from.Remnant(ctx, c.ID)
	switch {
	case err == nil && structure.Equal(own, c.Remnant()):
		return nil
	case err == nil:
		return fmt.Errorf("it was deleted in the store, where forks inherit other overrides: %w", lineage.ErrExists)
	case !errors.Is(err, lineage.ErrNotFound):
		return err
	}
	var line []*structure.Remnant
	seen := map[structure.ContextID]bool{c.ID: true} // the database may be damaged
	for parent := &c.Parent; !parent.IsZero(); {
		_, err := from.Context(ctx, *parent)
		if err == nil {
			break
		}
		if !errors.Is(err, lineage.ErrNotFound) {
			return err
		}
		r, err := from.Remnant(ctx, *parent)
		if err == nil {
			line = append(line, r) // a fork is only accepted together with the remnant
			break
		}
		if !errors.Is(err, lineage.ErrNotFound) {
			return err
		}
		if r, err = l.inherited(ctx, *parent); err != nil {
			return err
		}
		if r == nil || seen[r.ID] {
			*parent = structure.ContextID{}
			break
		}
		seen[r.ID] = true
		line, parent = append(line, r), &r.Parent
	}
	for _, r := range slices.Backward(line) {
		b.Adopt(r)
	}
	return nil
}
