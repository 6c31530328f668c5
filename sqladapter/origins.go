package sqladapter

import (
	"context"
	"errors"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter/internal/tables"
)

// lineage_origins has the origins of messages that state one.

var originSQL = struct{ removeOfChat Statement }{
	removeOfChat: `DELETE FROM "lineage_origins" WHERE "messageId" IN (SELECT m."id" {exactly} FROM "messages" m WHERE m."chatId" = ?)`,
}

// insertOrigins inserts the origins of new messages.
func (c *Conn) insertOrigins(ctx context.Context, messages []chat.Message) error {
	if c.db.dialect.Search().Unlinked { // messages deleted by other programs may have left rows
		ids := make([]string, len(messages))
		for i := range messages {
			ids[i] = messages[i].ID
		}
		if err := c.execAll(ctx, sqlOf[tables.Origins].remove, ids); err != nil {
			return err
		}
	}
	return c.insert(ctx, sqlOf[tables.Origins].insert, originRows(messages))
}

// mustKnowSources refuses messages that are derived from a message that is not in the chat.
func (c *Conn) mustKnowSources(ctx context.Context, messages []chat.Message) error {
	for _, m := range messages {
		err := c.mustMessage(ctx, m.ChatID, chat.Ref(m.Origin.DerivedFrom))
		if errors.Is(err, chat.ErrNotFound) || errors.Is(err, chat.ErrOtherChat) {
			if _, notContent := content.ParseID(m.Origin.DerivedFrom); notContent == nil {
				continue
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
