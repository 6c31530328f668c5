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
func (names *chatOf) source(id string) string {
	if id == "" {
		return ""
	}
	return names.space + id
}

// named returns the source id of the branch that the caller means by an id: one that such a caller chose, or that another one did.
func (names *chatOf) named(ctx context.Context, store *lineage.Store, id string) (string, error) {
	if names.space != "" {
		for in, err := range chat.WithBranch(ctx, store, names.space+id) {
			if err != nil || in.ID == names.id {
				return names.space + id, err
			}
		}
	}
	return id, nil
}

// chosen returns the id of a branch as the caller chose it.
func (names *chatOf) chosen(id string) string { return strings.TrimPrefix(id, names.space) }

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
	names := &chatOf{id: cmp.Or(info.SourceID, info.ID.String()), thread: info.ID, scope: &w.caller.Scope, space: w.caller.Scope.Space(&info)}
	if listed, err := chat.IsChat(ctx, w.store, &info); err != nil || !listed {
		return nil, cmp.Or(err, notFound("chat", names.id))
	}
	return names, nil
}

// inChat reads the chat of a thread. Chats are looked up by their ids: if meanwhile the thread was deleted, or another one has its id
// as source id, what was read may be of another chat, and the error is ErrNotFound.
func (c *call) inChat(ctx context.Context, thread string, read func(chats chat.Store, names *chatOf) error) error {
	names, err := c.chatOf(ctx, thread)
	if err != nil {
		return err
	}
	failed := read(chat.On(c.store), names)
	if other, err := c.chatOf(ctx, names.thread.String()); err != nil || other.id != names.id {
		return cmp.Or(err, notFound("thread", thread))
	}
	return names.problem(failed)
}

// changeChat changes the chat of a thread in the transaction.
func (w *within) changeChat(ctx context.Context, thread string, change func(names *chatOf) error) (made, error) {
	names, err := w.chatOf(ctx, thread)
	if err != nil {
		return made{}, err
	}
	return made{}, names.problem(change(names))
}

// problem returns the error for a caller that may read the chat. It names what is missing there, by the ids that the caller chose.
// What only another chat has is also missing for a caller that may not read all chats.
func (names *chatOf) problem(err error) error {
	if head := new(chat.HeadError); errors.As(err, &head) {
		stated := *head
		stated.BranchID = names.chosen(head.BranchID)
		p := problem.New(http.StatusPreconditionFailed, "tip moved", stated.Error())
		p.Tip = (*string)(&stated.Actual)
		return p
	}
	failed := new(chat.Error)
	if !errors.As(err, &failed) {
		return err
	}
	stated := *failed
	stated.ChatID = names.scope.Chosen(failed.ChatID)
	switch failed.Subject {
	case chat.SubjectChat:
		stated.ID = names.scope.Chosen(failed.ID)
		return &stated
	case chat.SubjectBranch:
		stated.ID = names.chosen(failed.ID)
	}
	if errors.Is(err, chat.ErrOtherChat) && !names.scope.All() {
		stated.Err, stated.Detail = chat.ErrNotFound, ""
	}
	err = &stated
	switch {
	case errors.Is(err, chat.ErrNotFound):
		return problem.New(http.StatusNotFound, "not found", err.Error())
	case errors.Is(err, chat.ErrOtherChat), errors.Is(err, chat.ErrOwnParent):
		return problem.New(http.StatusBadRequest, "invalid", err.Error())
	}
	return err
}

func (names *chatOf) branch(b *chat.Branch) *chatBranch {
	return &chatBranch{ID: names.chosen(b.ID), Name: b.Name, Head: orNull(b.HeadMessageID), Active: b.IsActive, CreatedAt: at(b.CreatedAt)}
}
