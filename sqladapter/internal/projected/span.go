package projected

import (
	"context"
	"database/sql"

	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/internal/chatrows"
	"github.com/lineage-store/lineage/sqladapter/internal/lists"
)

var spanSQL = struct{ message sqladapter.Statement }{
	message: `SELECT m."id" FROM "message_usages" u JOIN "messages" m ON m."id" = u."source_id" ` +
		`WHERE u."span_id" = ? AND u."lookup" > 0 AND m."chatId" = ?`,
}

// MessageAt returns the message of a chat for a span.
func MessageAt(ctx context.Context, db *sqladapter.DB, chatID, thread string, span sql.NullString) (id chat.Ref, err error) {
	if !span.Valid {
		return "", nil
	}
	err = db.Read(ctx, func(c *sqladapter.Conn) error {
		shared := thread + "/" + span.String
		found, err := chatrows.ChatsOf(ctx, c, []string{shared})
		if err != nil {
			return err
		}
		if found[shared] == chatID {
			id = chat.Ref(shared)
			return nil
		}
		own, err := lists.First(ctx, c, lists.ScanString, spanSQL.message, span.String, chatID)
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
