package sqladapter

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/structure"
)

var importContextSQL = struct {
	ofThread, messageAt Statement
}{
	ofThread: `SELECT "id", "parent_context_id", "base_span_id", "tip_span_id", "system_prompt_override", "model_override", ` +
		`"overrides", "metadata", "created_at" FROM "contexts" WHERE "thread_id" = ? ORDER BY "created_at", "id"`,
	messageAt: `SELECT m."id" FROM "message_usages" u JOIN "messages" m ON m."id" = u."source_id" ` +
		`WHERE u."span_id" = ? AND u."lookup" > 0 AND m."chatId" = ?`,
}

// storedContext is a row of contexts.
type storedContext struct {
	id                  string
	parent, base, tip   sql.NullString
	prompt, model, json sql.NullString
	metadata            sql.NullString
	createdAt           int64
}

func scanContext(rows *Rows) (storedContext, error) {
	var c storedContext
	err := rows.Scan(&c.id, &c.parent, &c.base, &c.tip, &c.prompt, &c.model, &c.json, &c.metadata, &c.createdAt)
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
	rows, err = readAll(ctx, db, scanContext, importContextSQL.ofThread, thread)
	if err != nil {
		return false, err
	}
	for _, row := range rows {
		new, err := db.importContext(ctx, store, chatID, thread, row)
		changed = changed || new
		switch {
		case errors.Is(err, chat.ErrNotFound), errors.Is(err, chat.ErrOtherChat), errors.Is(err, structure.ErrBadID), errors.Is(err, lineage.ErrConflict), errors.Is(err, lineage.ErrExists):
			problem(fmt.Errorf("context %s: %w", row.id, err))
		case err != nil:
			return changed, err
		}
	}
	return changed, nil
}

// importContext brings a context, and reports whether anything changed.
func (db *DB) importContext(ctx context.Context, store *lineage.Store, chatID, thread string, row storedContext) (changed bool, err error) {
	is := write.Context{CreatedAt: time.UnixMilli(row.createdAt).UTC()}
	if is.ID, err = structure.ParseID[lineage.ContextID](row.id); err != nil {
		return false, err
	}
	if row.parent.Valid {
		if is.Parent, err = structure.ParseID[lineage.ContextID](row.parent.String); err != nil {
			return false, err
		}
	}
	if row.prompt.Valid {
		is.Overrides.SystemPrompt = &row.prompt.String
	}
	if row.model.Valid {
		is.Overrides.Model = &row.model.String
	}
	if row.json.Valid {
		is.Overrides.JSON = []byte(row.json.String)
	}
	if row.metadata.Valid {
		is.Metadata = []byte(row.metadata.String)
	}
	tip, err := db.messageAt(ctx, chatID, thread, row.tip)
	if err != nil {
		return false, err
	}
	base, err := db.messageAt(ctx, chatID, thread, row.base)
	if errors.Is(err, chat.ErrNotFound) {
		base, err = tip, nil // it moved away from there, and no history of the chat has that any more
	}
	if err != nil {
		return false, err
	}
	return loadContext(ctx, store, chatID, is, base, tip)
}

// loadContext brings a context, which began at one message of a chat and stands at another, into a store,
// and reports whether anything changed. One that is there only gets overrides that it has none of, and moves
// on along its history. A parent that is not there is left out.
func loadContext(ctx context.Context, store *lineage.Store, chatID string, is write.Context, base, tip chat.Ref) (changed bool, err error) {
	t, _, err := chat.Spans(ctx, store, chatID)
	if err != nil {
		return false, err
	}
	return loadAt(ctx, store, t.UpdatedAt, func(tx *lineage.Store) error { // nobody changes the chat now
		t, at, err := chat.Spans(ctx, tx, chatID, base, tip)
		if err != nil {
			return err
		}
		is := is
		is.Thread, is.At = t.ID, at[0]
		return stateContext(ctx, tx, is, at[1])
	})
}

// stateContext is loadContext inside a transaction.
func stateContext(ctx context.Context, tx *lineage.Store, is write.Context, tip structure.SpanRef) error {
	writer := write.Of(tx)
	known, err := writer.Engine().Context(ctx, is.ID)
	if errors.Is(err, lineage.ErrNotFound) {
		if _, err := writer.Engine().Remnant(ctx, is.ID); err == nil {
			return fmt.Errorf("it was deleted in the store, where forks inherit its overrides: %w", lineage.ErrExists)
		} else if !errors.Is(err, lineage.ErrNotFound) {
			return err
		}
		if !is.Parent.IsZero() {
			if _, err := writer.Engine().Context(ctx, is.Parent); errors.Is(err, lineage.ErrNotFound) {
				is.Parent = lineage.ContextID{}
			} else if err != nil {
				return err
			}
		}
		_, err = writer.Make(ctx, func(b *write.Batch, _ write.Try) error {
			if b.NewContext(is); tip != is.At {
				b.Point(is.ID, tip)
			}
			return nil
		})
		return err
	}
	if err == nil && known.Thread != is.Thread {
		err = &chat.Error{Subject: "context", ID: is.ID.String(), Err: chat.ErrOtherChat}
	}
	if err != nil {
		return err
	}
	forward, err := structure.IsAncestor(known.Tip, tip, backend.Runs(ctx, writer.Engine()))
	if err != nil {
		return err
	}
	_, err = writer.Make(ctx, func(b *write.Batch, _ write.Try) error {
		if known.Overrides.IsZero() && !is.Overrides.IsZero() {
			now := known.Context
			now.Overrides = is.Overrides // as they are, be they JSON or not
			b.StateContext(now)
		}
		if forward && tip != known.Tip {
			b.Expect(is.ID, known.Tip)
			b.Point(is.ID, tip)
		}
		return nil
	})
	return err
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
