package sqladapter

import (
	"context"
	"errors"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/chat"
)

// Who said a message is in lineage_origins, where the message states it.

var originSQL = struct {
	insert, remove, removeOfChat Statement
}{
	insert:       `INSERT INTO "lineage_origins" ("messageId", "userId", "modelId", "sourceId", "derivedFrom") VALUES {rows:5}`,
	remove:       `DELETE FROM "lineage_origins" WHERE "messageId" IN ({list})`,
	removeOfChat: `DELETE FROM "lineage_origins" WHERE "messageId" IN (SELECT m."id" {exactly} FROM "messages" m WHERE m."chatId" = ?)`,
}

// originRows returns the rows of the messages that state an origin.
func originRows(messages []chat.Message) [][]any {
	var rows [][]any
	for _, m := range messages {
		if o := m.Origin; o != (chat.Origin{}) {
			rows = append(rows, []any{m.ID, optional(o.UserID), optional(o.ModelID), optional(o.SourceID), optional(o.DerivedFrom)})
		}
	}
	return rows
}

// insertOrigins inserts the origins of messages that were added just now.
func (c *Conn) insertOrigins(ctx context.Context, messages []chat.Message) error {
	if c.db.dialect.Search().Unlinked { // a message that another program deleted may have left one
		ids := make([]string, len(messages))
		for i := range messages {
			ids[i] = messages[i].ID
		}
		if err := c.execAll(ctx, originSQL.remove, ids); err != nil {
			return err
		}
	}
	return c.insert(ctx, originSQL.insert, originRows(messages))
}

// mustKnowSources refuses messages that were derived from a message that is not in the chat.
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
