package sqladapter

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/structure"
)

var importContextSQL = struct {
	ofThread, messageAt Statement
}{
	ofThread: `SELECT "id", "parent_context_id", "thread_id", "base_span_id", "tip_span_id", "system_prompt_override", "model_override", ` +
		`"overrides", "metadata", "created_at" FROM "contexts" WHERE "thread_id" = ? ORDER BY "created_at", "id"`,
	messageAt: `SELECT m."id" FROM "message_usages" u JOIN "messages" m ON m."id" = u."source_id" ` +
		`WHERE u."span_id" = ? AND u."lookup" > 0 AND m."chatId" = ?`,
}

// storedContext is a row of contexts.
type storedContext struct {
	id                  string
	parent, thread      sql.NullString
	base, tip           sql.NullString
	prompt, model, json sql.NullString
	metadata            sql.NullString
	createdAt           int64
}

func scanContext(rows *sql.Rows) (storedContext, error) {
	var c storedContext
	err := rows.Scan(&c.id, &c.parent, &c.thread, &c.base, &c.tip, &c.prompt, &c.model, &c.json, &c.metadata, &c.createdAt)
	return c, err
}

// hasContexts reports whether a projector has written contexts to the database.
func (db *DB) hasContexts(ctx context.Context) (has bool, err error) {
	err = db.Read(ctx, func(c *Conn) error {
		m, err := c.mark(ctx)
		has = m != nil && m.Lineage
		return err
	})
	return has, err
}

// importContexts imports the contexts of an imported chat, and reports whether there were changes.
func (db *DB) importContexts(ctx context.Context, store *lineage.Store, chatID, thread string, problem func(error)) (changed bool, err error) {
	var rows []storedContext
	err = db.Read(ctx, func(c *Conn) error {
		found, err := c.Query(ctx, importContextSQL.ofThread, thread)
		rows, err = all(found, err, scanContext)
		return err
	})
	if err != nil {
		return false, err
	}
	for _, row := range rows {
		l, err := db.loadingContext(ctx, chatID, row)
		if err == nil {
			var new bool
			new, err = chat.LoadContext(ctx, store, l)
			changed = changed || new
		}
		switch {
		case errors.Is(err, chat.ErrNotFound), errors.Is(err, chat.ErrOtherChat), errors.Is(err, structure.ErrBadID), errors.Is(err, lineage.ErrConflict):
			problem(fmt.Errorf("context %s: %w", row.id, err))
		case err != nil:
			return changed, err
		}
	}
	return changed, nil
}

// loadingContext converts a row.
func (db *DB) loadingContext(ctx context.Context, chatID string, row storedContext) (l chat.LoadingContext, err error) {
	l.ChatID, l.CreatedAt = chatID, row.createdAt
	if l.ID, err = structure.ParseID[lineage.ContextID](row.id); err != nil {
		return l, err
	}
	if row.parent.Valid {
		if l.Parent, err = structure.ParseID[lineage.ContextID](row.parent.String); err != nil {
			return l, err
		}
	}
	if l.Tip, err = db.messageAt(ctx, chatID, row.thread.String, row.tip); err != nil {
		return l, err
	}
	l.Base, err = db.messageAt(ctx, chatID, row.thread.String, row.base)
	if errors.Is(err, chat.ErrNotFound) {
		l.Base, err = l.Tip, nil // the context moved, and no history of the chat has its base any more
	}
	if err != nil {
		return l, err
	}
	if row.prompt.Valid {
		l.Overrides.SystemPrompt = &row.prompt.String
	}
	if row.model.Valid {
		l.Overrides.Model = &row.model.String
	}
	if row.json.Valid {
		l.Overrides.JSON = []byte(row.json.String)
	}
	if row.metadata.Valid {
		l.Metadata = []byte(row.metadata.String)
	}
	return l, nil
}

// messageAt returns the message of a chat for a span.
func (db *DB) messageAt(ctx context.Context, chatID, thread string, span sql.NullString) (id chat.Ref, err error) {
	if !span.Valid {
		return "", nil
	}
	err = db.Read(ctx, func(c *Conn) error {
		shared := thread + "/" + span.String
		found, err := c.chatsOf(ctx, []string{shared})
		if err != nil {
			return err
		}
		if found[shared] == chatID {
			id = chat.Ref(shared)
			return nil
		}
		rows, err := c.Query(ctx, importContextSQL.messageAt, span.String, chatID)
		own, err := first(rows, err, scanString)
		if own != nil {
			id = chat.Ref(*own)
		}
		return err
	})
	if err == nil && id == "" {
		err = &chat.Error{Subject: chat.SubjectMessage, ID: span.String, ChatID: chatID, Err: chat.ErrNotFound}
	}
	return id, err
}
