package conversation

import (
	"context"
	"fmt"

	"github.com/lineage-store/lineage/lineage"
)

// Open returns the conversation of a session, and creates it if necessary. The session id is the source id of
// its thread. A new conversation has an empty main branch, which is current.
func Open(ctx context.Context, store *lineage.Store, sessionID string, o Options) (*Conversation, error) {
	if err := checkText("session", "id", sessionID); err != nil {
		return nil, err
	}
	thread, err := store.OpenThread(ctx, lineage.ThreadOptions{SourceID: sessionID, UserID: o.UserID, Title: o.Title})
	c := &Conversation{store: store, thread: thread}
	if err == nil {
		err = c.ensureMain(ctx, o.StartOnMain)
	}
	if err != nil {
		return nil, fmt.Errorf("open conversation: %w", err)
	}
	return c, nil
}
