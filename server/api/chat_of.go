package api

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/server/access"
	"github.com/lineage-store/lineage/server/problem"
)

// chatOf is the chat of a thread, as a caller may see it.
type chatOf struct {
	id     string
	thread lineage.ThreadID
	scope  *access.Scope
	// space is before the ids of branches that the caller chooses: see access.Scope.
	space string
}

// source returns the source id of a branch for which the caller chose an id.
func (of *chatOf) source(id string) string {
	if id == "" {
		return ""
	}
	return of.space + id
}

// named returns the source id of the branch that the caller means by an id: one that such a caller chose, or that another one did.
func (of *chatOf) named(ctx context.Context, store *lineage.Store, id string) (string, error) {
	if of.space != "" {
		for in, err := range chat.WithBranch(ctx, store, of.space+id) {
			if err != nil || in.ID == of.id {
				return of.space + id, err
			}
		}
	}
	return id, nil
}

// chosen returns the id of a branch as the caller chose it.
func (of *chatOf) chosen(id string) string { return strings.TrimPrefix(id, of.space) }

// chatOf returns the chat that a thread is: see chat.IsChat.
func (w *within) chatOf(ctx context.Context, thread string) (*chatOf, error) {
	t, err := w.thread(ctx, thread)
	if err != nil {
		return nil, err
	}
	info, err := t.Info(ctx)
	if err != nil {
		return nil, hidden(err, "thread", thread)
	}
	of := &chatOf{id: cmp.Or(info.SourceID, info.ID.String()), thread: info.ID, scope: &w.caller.Scope, space: w.caller.Scope.Space(&info)}
	if listed, err := chat.IsChat(ctx, w.store, &info); err != nil || !listed {
		return nil, cmp.Or(err, notFound("chat", of.id))
	}
	return of, nil
}

// inChat reads the chat of a thread. Chats are looked up by their ids: if meanwhile the thread was deleted, or another one has its id
// as source id, what was read may be of another chat, and the error is ErrNotFound.
func (c *call) inChat(ctx context.Context, thread string, read func(chats chat.Store, of *chatOf) error) error {
	of, err := c.chatOf(ctx, thread)
	if err != nil {
		return err
	}
	failed := read(chat.On(c.store), of)
	if again, err := c.chatOf(ctx, of.thread.String()); err != nil || again.id != of.id {
		return cmp.Or(err, notFound("thread", thread))
	}
	return of.problem(failed)
}

// changeChat changes the chat of a thread in the transaction.
func (w *within) changeChat(ctx context.Context, thread string, change func(of *chatOf) error) (made, error) {
	of, err := w.chatOf(ctx, thread)
	if err != nil {
		return made{}, err
	}
	return made{}, of.problem(change(of))
}

// problem returns the error for a caller that may read the chat. It names what is missing there, by the ids that the caller chose.
// What only another chat has is also missing for a caller that may not read all chats.
func (of *chatOf) problem(err error) error {
	if head := new(chat.HeadError); errors.As(err, &head) {
		told := *head
		told.BranchID = of.chosen(head.BranchID)
		p := problem.New(http.StatusPreconditionFailed, "tip moved", told.Error())
		p.Tip = (*string)(&told.Actual)
		return p
	}
	failed := new(chat.Error)
	if !errors.As(err, &failed) {
		return err
	}
	told := *failed
	told.ChatID = of.scope.Chosen(failed.ChatID)
	switch failed.Subject {
	case chat.SubjectChat:
		told.ID = of.scope.Chosen(failed.ID)
		return &told
	case chat.SubjectBranch:
		told.ID = of.chosen(failed.ID)
	}
	if errors.Is(err, chat.ErrOtherChat) && !of.scope.All() {
		told.Err, told.Detail = chat.ErrNotFound, ""
	}
	err = &told
	switch {
	case errors.Is(err, chat.ErrNotFound):
		return problem.New(http.StatusNotFound, "not found", err.Error())
	case errors.Is(err, chat.ErrOtherChat), errors.Is(err, chat.ErrOwnParent):
		return problem.New(http.StatusBadRequest, "invalid", err.Error())
	}
	return err
}

func (of *chatOf) branch(b *chat.Branch) *chatBranch {
	return &chatBranch{ID: of.chosen(b.ID), Name: b.Name, Head: orNull(b.HeadMessageID), Active: b.IsActive, CreatedAt: at(b.CreatedAt)}
}
