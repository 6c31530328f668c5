package chatrows

import (
	"context"

	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/internal/lists"
	"github.com/lineage-store/lineage/sqladapter/internal/tables"
)

// Insert inserts messages, parents first, with all rows that belong to them. It does not
// check them.
func Insert(ctx context.Context, c *sqladapter.Conn, messages []chat.Message) error {
	// This must happen before the rows exist, because otherwise the chat would be indexed as if other programs had
	// written them.
	depths, err := DepthsOfNew(ctx, c, messages)
	if err != nil {
		return err
	}
	if err := lists.Insert(ctx, c, tables.Messages.Insert, MessageRows(messages)); err != nil {
		return err
	}
	if err := insertOrigins(ctx, c, messages); err != nil {
		return err
	}
	return IndexOwn(ctx, c, messages, depths)
}

// insertOrigins inserts the origins of new messages.
func insertOrigins(ctx context.Context, c *sqladapter.Conn, messages []chat.Message) error {
	if c.Dialect().Search().Unlinked { // messages deleted by other programs may have left rows
		ids := make([]string, len(messages))
		for i := range messages {
			ids[i] = messages[i].ID
		}
		if err := lists.ExecList(ctx, c, tables.Origins.Remove, ids); err != nil {
			return err
		}
	}
	return lists.Insert(ctx, c, tables.Origins.Insert, OriginRows(messages))
}
