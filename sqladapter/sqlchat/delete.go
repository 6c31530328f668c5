package sqlchat

import (
	"context"
	"errors"

	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/internal/chatrows"
)

var deleteSQL = struct{ user sqladapter.Statement }{
	user: `SELECT "userId" FROM "chats" WHERE "id" = ?`,
}

// DeleteChat implements chat.Store.
func (s *store) DeleteChat(ctx context.Context, id string, o chat.DeleteOptions) (deleted bool, err error) {
	inParts := false
	err = chatrows.Write(ctx, s.db, func(c *sqladapter.Conn) error {
		deleted, inParts = false, false
		found, err := chatByID(ctx, c, id)
		if err != nil {
			return err
		}
		if found == nil {
			if inParts, err = chatrows.IsBeingDeleted(ctx, c, id); err != nil {
				return err
			}
			if inParts && o.UserID != "" {
				user := ""
				if _, err := c.Get(ctx, deleteSQL.user, []any{id}, &user); err != nil {
					return err
				}
				inParts = user == o.UserID
			}
			deleted = inParts
			return sqladapter.ErrUnchanged
		}
		if o.UserID != "" && o.UserID != found.UserID {
			return sqladapter.ErrUnchanged
		}
		if err := touch(ctx, c, id); errors.Is(err, chat.ErrNotFound) {
			return sqladapter.ErrUnchanged
		} else if err != nil {
			return err
		}
		deleted = true
		if inParts, err = chatrows.IsLarge(ctx, c, id); err != nil {
			return err
		}
		if !inParts {
			return chatrows.DeleteChat(ctx, c, id)
		}
		return chatrows.BeginDeletion(ctx, c, id)
	})
	if err == nil && inParts {
		err = chatrows.FinishDeletion(ctx, s.db, id)
	}
	return deleted && err == nil, err
}
