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
	// MainName is its name until it is renamed.
	MainName = "Main conversation"
)

// Options say how a conversation is opened. The zero value of each field is a
// default.
type Options struct {
	// UserID and Title are those of the thread, if it is made now. The conversation of another user is
	// lineage.ErrOtherUser.
	UserID, Title string
	// StartOnMain makes the main branch current. By default a conversation goes on
	// with the branch that was.
	StartOnMain bool
}

// Conversation is a session's conversation and its branches. It is safe for
// concurrent use.
type Conversation struct {
	store  *lineage.Store
	thread *lineage.Thread
}

// Open returns the conversation of a session, making it if there is none: the source
// id of its thread is the session id. A new one has an empty main branch, which is
// current.
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

// ensureMain creates the main branch of a thread that was made by other means, and makes it
// current if it is to be or no other branch is.
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

// change begins a change of the branches. No other Conversation of the thread and store changes them until end is
// called, which delivers the events. So events are in the order of the changes.
func (c *Conversation) change() (end func()) {
	changing := c.changing()
	changing.Lock()
	return func() {
		changing.Unlock()
		c.deliver()
	}
}

// inTransaction does something with the conversation in one transaction: see lineage.Store.Update.
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

// Thread returns the thread below, for everything else that can be done with it.
func (c *Conversation) Thread() *lineage.Thread { return c.thread }

// checkText refuses ids and names that could not be told apart or kept as JSON.
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
