package conversation

import (
	"context"
	"errors"
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

// ensureMain creates the main branch if the thread has none. It checks the branch out if current is set or no
// branch is current.
func (c *Conversation) ensureMain(ctx context.Context, current bool) error {
	defer c.change()()
	_, err := c.thread.On(ctx, Main)
	if errors.Is(err, lineage.ErrNotFound) {
		_, err = c.thread.CreateBranch(ctx, Main, lineage.BranchOptions{Empty: true, Metadata: newMetadata(MainName, "", 0)})
		if err == nil {
			c.enqueue(Event{Kind: BranchCreated, ID: Main, Name: MainName})
		}
	}
	if err != nil && !errors.Is(err, lineage.ErrExists) { // else another process has just created it
		return err
	}
	if _, none := c.thread.Active(ctx); none == nil && !current {
		return nil
	}
	return c.checkout(ctx, Main)
}

// change locks the branches against changes by other Conversations of the store until end is called. end
// delivers the events, which are therefore in the order of the changes.
func (c *Conversation) change() (end func()) {
	changing := c.changing()
	changing.Lock()
	return func() {
		changing.Unlock()
		c.deliver()
	}
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
