package importing

import (
	"context"
	"database/sql"

	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/internal/projected"
)

// importedChat is a chat to import. A chat of a projection also has contexts and values. Without a chat, it is what the
// projection has outside of chats.
type importedChat struct {
	db             *sqladapter.DB
	chatID, thread string
	// problem reports an item that cannot be imported.
	problem func(error)
}

// messageAt returns the message of the chat for a span.
func (s *importedChat) messageAt(ctx context.Context, span sql.NullString) (chat.Ref, error) {
	return projected.MessageAt(ctx, s.db, s.chatID, s.thread, span)
}
