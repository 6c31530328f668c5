package conversation

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
)

const (
	// Main is the id of the branch that every conversation has.
	Main = lineage.MainBranch
	// MainName is its initial name.
	MainName = "Main conversation"
)

// Options configure Open. The zero value of each field is a default.
type Options struct {
	// UserID and Title are set if the thread is created. Opening a conversation of another user fails with
	// lineage.ErrOtherUser.
	UserID, Title string
	// StartOnMain checks out the main branch. By default the current branch stays.
	StartOnMain bool
}

// Conversation is a session's conversation and its branches. It is safe for
// concurrent use.
type Conversation struct {
	store  *lineage.Store
	thread *lineage.Thread
}

// inTransaction calls do in a transaction: see lineage.Store.Update.
func (c *Conversation) inTransaction(ctx context.Context, do func(in *Conversation) error) error {
	return c.store.Update(ctx, func(ctx context.Context, tx *lineage.Tx) error {
		write.Of(tx.Store).Engine().(*write.Stage).AllowLarge() // what a caller gives at once is in memory already
		thread, err := tx.Thread(ctx, c.thread.ID())
		if err != nil {
			return err
		}
		return do(&Conversation{store: tx.Store, thread: thread})
	})
}

// Thread returns the thread of the conversation, for all other operations.
func (c *Conversation) Thread() *lineage.Thread { return c.thread }

// checkText refuses ids and names that are not valid as JSON text.
func checkText(subject, what, text string) error {
	switch {
	case strings.TrimSpace(text) == "":
		return fmt.Errorf("%s without %s: %w", subject, what, lineage.ErrInvalid)
	case !utf8.ValidString(text):
		return fmt.Errorf("%s %s %q is not UTF-8: %w", subject, what, text, lineage.ErrInvalid)
	}
	return nil
}

func branchError(id string, err error, detail string) error {
	return &lineage.SubjectError{Subject: "branch", ID: fmt.Sprintf("%q", id), Err: err, Detail: detail}
}
