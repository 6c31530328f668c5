package importing

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/internal/chatrows"
	"github.com/lineage-store/lineage/sqladapter/internal/lists"
	"github.com/lineage-store/lineage/structure"
)

var valueSQL = struct {
	named, ofThread, ofContexts sqladapter.Statement
}{
	named: `SELECT "scope", "owner", "key", "value", "content_id", "set_at", "seen_span_id" FROM "lineage_values" ` +
		`WHERE "scope" IN ('store', 'application', 'user') ORDER BY "commit_number", "id"`,
	ofThread: `SELECT "scope", "owner", "key", "value", "content_id", "set_at", "seen_span_id" FROM "lineage_values" ` +
		`WHERE "scope" = 'thread' AND "owner" = ? ORDER BY "commit_number", "id"`,
	ofContexts: `SELECT v."scope", v."owner", v."key", v."value", v."content_id", v."set_at", v."seen_span_id" ` +
		`FROM "contexts" c JOIN "lineage_values" v ON v."scope" = 'context' AND v."owner" = c."id" ` +
		`WHERE c."thread_id" = ? ORDER BY v."commit_number", v."id"`,
}

// storedValue is a row of lineage_values.
type storedValue struct {
	scope, owner, key      string
	value, content, seenAt sql.NullString
	setAt                  int64
}

func scanValue(rows *sqladapter.Rows) (v storedValue, err error) {
	err = rows.Scan(&v.scope, &v.owner, &v.key, &v.value, &v.content, &v.setAt, &v.seenAt)
	return v, err
}

// importValues imports the values of the chat and its contexts. Without a chat, it imports those of the store,
// applications and users, or only those of one user if userID is not empty. It reports whether anything changed.
func (s *importedChat) importValues(ctx context.Context, store *lineage.Store, userID string) (changed bool, err error) {
	statements, args := []sqladapter.Statement{valueSQL.named}, []any(nil)
	if s.chatID != "" {
		statements, args = []sqladapter.Statement{valueSQL.ofThread, valueSQL.ofContexts}, []any{s.thread}
	}
	var rows []storedValue
	for _, statement := range statements {
		values, err := lists.ReadAll(ctx, s.db, scanValue, statement, args...)
		if err != nil {
			return false, err
		}
		rows = append(rows, values...)
	}
	for _, row := range rows {
		if s.chatID == "" && userID != "" && (row.scope != structure.UserScope.String() || row.owner != userID) {
			continue
		}
		new, err := s.importValue(ctx, store, row)
		changed = changed || new
		switch {
		case errors.Is(err, chat.ErrNotFound), errors.Is(err, chat.ErrOtherChat), errors.Is(err, chat.ErrInvalid), errors.Is(err, structure.ErrBadID):
			s.problem(fmt.Errorf("value %q of %s %q: %w", chatrows.Shortened(row.key), row.scope, chatrows.Shortened(row.owner), err))
		case err != nil:
			return changed, err
		}
	}
	return changed, nil
}

// importValue imports a value, and reports whether anything changed.
func (s *importedChat) importValue(ctx context.Context, store *lineage.Store, row storedValue) (changed bool, err error) {
	var value structure.Value
	if value.Key = row.key; row.value.Valid {
		value.JSON = []byte(row.value.String)
	} else if row.content.Valid {
		return false, fmt.Errorf("the database does not have it: %w", chat.ErrNotFound)
	}
	for scope := structure.StoreScope; scope <= structure.ContextScope; scope++ {
		if scope.String() == row.scope {
			value.Owner.Scope = scope
		}
	}
	var seen chat.Ref
	switch value.Owner.Scope {
	case structure.ApplicationScope, structure.UserScope:
		value.Owner.Name = row.owner
	case structure.ContextScope:
		if value.Owner.Context, err = structure.ParseID[lineage.ContextID](row.owner); err != nil {
			return false, err
		}
		seen, err = s.messageAt(ctx, row.seenAt)
		if errors.Is(err, chat.ErrNotFound) {
			value.Seen, err = structure.CollectedSpan, nil
		}
		if err != nil {
			return false, err
		}
	}
	value.At = time.UnixMilli(row.setAt).UTC()
	return loadAt(ctx, store, value.At, func(tx *lineage.Store) error { return loadValue(ctx, tx, s.chatID, value, seen) })
}

// loadValue adds a value in a transaction, unless the store has it as the latest or an earlier value, or has a value
// that was set later. Values of one key must come in the order in which they were set. seen is the message that the
// context of the value pointed to.
func loadValue(ctx context.Context, tx *lineage.Store, chatID string, value structure.Value, seen chat.Ref) error {
	writer := write.Of(tx)
	if value.Owner.Scope == structure.ThreadScope || value.Owner.Scope == structure.ContextScope {
		t, at, err := chat.Spans(ctx, tx, chatID, seen)
		if err != nil {
			return err
		}
		if value.Owner.Scope == structure.ThreadScope {
			value.Owner.Thread, value.Incarnation = t.ID, t.Incarnation
		} else if _, err := writer.Engine().Context(ctx, value.Owner.Context); err != nil {
			return err
		} else if value.Seen.IsZero() {
			value.Seen = at[0]
		}
	}
	newest := true
	for known, err := range writer.Engine().ValueHistory(ctx, value.ValueKey) {
		if err != nil || newest && known.At.After(value.At) || known.At.Equal(value.At) && isSet(&known, value.JSON) {
			return err
		}
		newest = false
	}
	_, err := writer.Make(ctx, func(b *write.Batch, _ write.Try) error {
		inline, large := value.JSON, content.ID{}
		if len(inline) > structure.MaxInlineValue {
			block, err := writer.Upload(ctx, content.Block{Type: content.TypeJSON, CreatedAt: value.At}, bytes.NewReader(inline))
			if err != nil {
				return err
			}
			b.Adopt(block)
			inline, large = nil, block.ID
		}
		b.Value(value.ValueKey, value.Incarnation, inline, large, value.Seen)
		return nil
	})
	return err
}

// isSet reports whether a value has some JSON. nil JSON stands for a deleted value.
func isSet(stored *backend.Value, value []byte) bool {
	if stored.Content.IsZero() || value == nil {
		return stored.Deleted() == (value == nil) && bytes.Equal(stored.JSON, value)
	}
	return stored.Content == content.Sum(value)
}
