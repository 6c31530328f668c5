package engine

import (
	"context"

	"github.com/lineage-store/lineage/internal/semaphore"
	"github.com/lineage-store/lineage/lineage/chat"
)

// Open returns an engine on the active branch of a chat, or on Options.Branch. The chat of another
// user is chat.ErrOtherUser, and a chat without a user chat.ErrNoUser.
func Open(ctx context.Context, store chat.Store, o Options) (*Engine, error) {
	if o.UserID == "" {
		return nil, &chat.Error{Subject: chat.SubjectChat, ID: o.ChatID, Err: chat.ErrInvalid, Detail: "no user id"}
	}
	e := &Engine{store: store, chatID: o.ChatID, decode: o.Decode, keepActive: o.Branch != "", busy: semaphore.New(1)}
	if o.Metadata != nil {
		if _, err := e.merged(nil, o.Metadata); err != nil {
			return nil, err
		}
	}
	c, err := store.UpsertChat(ctx, chat.Chat{ID: o.ChatID, UserID: o.UserID, Title: o.Title, Metadata: o.Metadata})
	if err != nil {
		return nil, err
	}
	if o.Metadata != nil {
		after, err := e.merged(c.Metadata, o.Metadata)
		if err != nil {
			return nil, err
		}
		if string(after) != string(c.Metadata) {
			if _, err := e.UpdateChat(ctx, chat.ChatUpdate{Metadata: o.Metadata}); err != nil {
				return nil, err
			}
		}
	}
	var on *chat.Branch
	if o.Branch != "" {
		on, err = e.named(ctx, o.Branch)
	} else {
		on, err = e.active(ctx)
	}
	if err != nil {
		return nil, err
	}
	e.branch = *on
	return e, nil
}
