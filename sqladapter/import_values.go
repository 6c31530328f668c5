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

var importValueSQL = struct {
	named, ofThread, ofContexts Statement
}{
	named: `SELECT "scope", "owner", "key", "value", "content_id", "set_at", "seen_span_id", '' AS "thread" FROM "lineage_values" ` +
		`WHERE "scope" IN ('store', 'application', 'user') ORDER BY "commit_number", "id"`,
	ofThread: `SELECT "scope", "owner", "key", "value", "content_id", "set_at", "seen_span_id", "owner" AS "thread" FROM "lineage_values" ` +
		`WHERE "scope" = 'thread' AND "owner" = ? ORDER BY "commit_number", "id"`,
	ofContexts: `SELECT v."scope", v."owner", v."key", v."value", v."content_id", v."set_at", v."seen_span_id", c."thread_id" ` +
		`FROM "contexts" c JOIN "lineage_values" v ON v."scope" = 'context' AND v."owner" = c."id" ` +
		`WHERE c."thread_id" = ? ORDER BY v."commit_number", v."id"`,
}

// storedValue is a row of lineage_values.
type storedValue struct {
	scope, owner, key      string
	value, content, seenAt sql.NullString
	thread                 sql.NullString
	setAt                  int64
}

func scanValue(rows *sql.Rows) (v storedValue, err error) {
	err = rows.Scan(&v.scope, &v.owner, &v.key, &v.value, &v.content, &v.setAt, &v.seenAt, &v.thread)
	return v, err
}

// importValues imports the values of a chat and its contexts or, without a chat, those of the
// store, applications and users. It reports whether there were changes.
func (db *DB) importValues(ctx context.Context, store *lineage.Store, chatID, thread string, o ImportOptions, problem func(error)) (changed bool, err error) {
	var rows []storedValue
	err = db.Read(ctx, func(c *Conn) error {
		rows = nil
		for _, s := range []Statement{importValueSQL.ofThread, importValueSQL.ofContexts, importValueSQL.named} {
			if (s == importValueSQL.named) != (chatID == "") {
				continue
			}
			var args []any
			if chatID != "" {
				args = []any{thread}
			}
			found, err := c.Query(ctx, s, args...)
			some, err := all(found, err, scanValue)
			if err != nil {
				return err
			}
			rows = append(rows, some...)
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	for _, row := range rows {
		if chatID == "" && o.UserID != "" && (row.scope != structure.UserScope.String() || row.owner != o.UserID) {
			continue
		}
		l, err := db.loadingValue(ctx, chatID, row)
		if err == nil {
			var new bool
			new, err = chat.LoadValue(ctx, store, l)
			changed = changed || new
		}
		switch {
		case errors.Is(err, chat.ErrNotFound), errors.Is(err, chat.ErrOtherChat), errors.Is(err, chat.ErrInvalid), errors.Is(err, structure.ErrBadID):
			problem(fmt.Errorf("value %q of %s %q: %w", shortened(row.key), row.scope, shortened(row.owner), err))
		case err != nil:
			return changed, err
		}
	}
	return changed, nil
}

// loadingValue converts a row.
func (db *DB) loadingValue(ctx context.Context, chatID string, row storedValue) (l chat.LoadingValue, err error) {
	l = chat.LoadingValue{ChatID: chatID, Key: row.key, SetAt: row.setAt}
	switch {
	case row.value.Valid:
		l.JSON = []byte(row.value.String)
	case row.content.Valid:
		return l, fmt.Errorf("the database does not have it: %w", chat.ErrNotFound)
	}
	for scope := structure.StoreScope; scope <= structure.ContextScope; scope++ {
		if scope.String() == row.scope {
			l.Owner.Scope = scope
		}
	}
	switch l.Owner.Scope {
	case structure.ApplicationScope, structure.UserScope:
		l.Owner.Name = row.owner
	case structure.ContextScope:
		if l.Owner.Context, err = structure.ParseID[lineage.ContextID](row.owner); err != nil {
			return l, err
		}
		l.Seen, err = db.messageAt(ctx, chatID, row.thread.String, row.seenAt)
		if l.Gone = errors.Is(err, chat.ErrNotFound); l.Gone {
			err = nil
		}
	}
	return l, err
}
