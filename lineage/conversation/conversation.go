package conversation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
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
	// UserID and Title are those of the thread, if it is made now.
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
	// changing makes events come in the order of the changes they tell of, and keeps
	// the current branch from changing under a message that is being added. No
	// listener is called while it is held.
	changing sync.RWMutex
}

// Open returns the conversation of a session, making it if there is none: the source
// id of its thread is the session id. A new one has an empty main branch, which is
// current.
func Open(ctx context.Context, store *lineage.Store, sessionID string, o Options) (*Conversation, error) {
	if err := checkText("session", "id", sessionID); err != nil {
		return nil, err
	}
	thread, err := store.CreateThread(ctx, lineage.ThreadOptions{SourceID: sessionID, Reuse: true, UserID: o.UserID, Title: o.Title})
	if err == nil {
		err = ensureMain(ctx, thread, o.StartOnMain)
	}
	if err != nil {
		return nil, fmt.Errorf("open conversation: %w", err)
	}
	return &Conversation{store: store, thread: thread}, nil
}

// ensureMain gives a thread that was made by other means the main branch, and makes it
// current if it is to be or no other branch is.
func ensureMain(ctx context.Context, thread *lineage.Thread, current bool) error {
	_, err := thread.On(ctx, Main)
	if errors.Is(err, lineage.ErrNotFound) {
		_, err = thread.CreateBranch(ctx, Main, lineage.BranchOptions{Empty: true, Metadata: newMetadata(MainName, "", 0)})
	}
	if err != nil && !errors.Is(err, lineage.ErrExists) { // else another one has just made it
		return err
	}
	if _, none := thread.Active(ctx); none == nil && !current {
		return nil
	}
	return thread.Switch(ctx, Main)
}

// change begins a change of the branches. What it returns ends the change, and delivers its events.
func (c *Conversation) change() (end func()) {
	c.changing.Lock()
	return func() {
		c.changing.Unlock()
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
