package engine

import (
	"context"
	"errors"

	"github.com/lineage-store/lineage/lineage/chat"
)

// Rewind creates a branch that ends with a message of the chat, switches to it and drops pending
// messages. Later messages stay on their branches.
func (e *Engine) Rewind(ctx context.Context, messageID string) (chat.BranchInfo, error) {
	end, err := e.start(ctx)
	if err != nil {
		return chat.BranchInfo{}, err
	}
	defer end()
	return e.rewind(ctx, messageID)
}

func (e *Engine) rewind(ctx context.Context, messageID string) (chat.BranchInfo, error) {
	m, err := e.store.Message(ctx, e.chatID, messageID)
	if err != nil {
		return chat.BranchInfo{}, err
	}
	if m == nil {
		return chat.BranchInfo{}, &chat.Error{Subject: chat.SubjectMessage, ID: messageID, ChatID: e.chatID, Err: chat.ErrNotFound}
	}
	at, err := e.current(ctx)
	if errors.Is(err, chat.ErrNotFound) { // the branch was deleted: Rewind still works
		at, err = e.seen(), nil
	}
	if err != nil {
		return chat.BranchInfo{}, err
	}
	info, err := e.branchFrom(ctx, at, chat.Ref(messageID), !e.keepActive)
	if err == nil {
		e.moveTo(info.Branch)
	}
	return info, err
}

// Aside creates a branch at the end of this one, for a side question ("btw"). The engine stays on
// its branch and keeps pending messages.
func (e *Engine) Aside(ctx context.Context) (chat.BranchInfo, error) {
	end, err := e.start(ctx)
	if err != nil {
		return chat.BranchInfo{}, err
	}
	defer end()
	at, err := e.current(ctx)
	if err != nil {
		return chat.BranchInfo{}, err
	}
	if at.HeadMessageID == "" {
		return chat.BranchInfo{}, &chat.Error{Subject: chat.SubjectBranch, ID: at.Name, ChatID: e.chatID, Err: ErrNoMessages}
	}
	return e.branchFrom(ctx, at, at.HeadMessageID, false)
}

// SwitchBranch switches to a branch, drops pending messages and, unless the engine was opened with
// Options.Branch, makes it the active one.
func (e *Engine) SwitchBranch(ctx context.Context, name string) error {
	end, err := e.start(ctx)
	if err != nil {
		return err
	}
	defer end()
	b, err := e.named(ctx, name)
	if err != nil {
		return err
	}
	if !e.keepActive {
		if err := e.store.SetActiveBranch(ctx, e.chatID, b.ID); err != nil {
			return err
		}
		b.IsActive = true
	}
	e.moveTo(*b)
	return nil
}

// Checkpoint sets a checkpoint at the last saved message of the branch. An existing checkpoint of
// that name is moved.
func (e *Engine) Checkpoint(ctx context.Context, name string) (chat.Checkpoint, error) {
	end, err := e.start(ctx)
	if err != nil {
		return chat.Checkpoint{}, err
	}
	defer end()
	at, err := e.current(ctx)
	if err != nil {
		return chat.Checkpoint{}, err
	}
	if at.HeadMessageID == "" {
		return chat.Checkpoint{}, &chat.Error{Subject: chat.SubjectCheckpoint, ID: name, ChatID: e.chatID, Err: ErrNoMessages}
	}
	return e.store.CreateCheckpoint(ctx, chat.Checkpoint{ChatID: e.chatID, Name: name, MessageID: string(at.HeadMessageID)})
}

// Restore rewinds to the message of a checkpoint: it creates a branch. The checkpoint does not
// move.
func (e *Engine) Restore(ctx context.Context, name string) (chat.BranchInfo, error) {
	end, err := e.start(ctx)
	if err != nil {
		return chat.BranchInfo{}, err
	}
	defer end()
	c, err := e.store.Checkpoint(ctx, e.chatID, name)
	if err != nil {
		return chat.BranchInfo{}, err
	}
	if c == nil {
		return chat.BranchInfo{}, &chat.Error{Subject: chat.SubjectCheckpoint, ID: name, ChatID: e.chatID, Err: chat.ErrNotFound}
	}
	return e.rewind(ctx, c.MessageID)
}

// Branches returns the branches of the chat, oldest first.
func (e *Engine) Branches(ctx context.Context) ([]chat.BranchInfo, error) {
	return e.store.ListBranches(ctx, e.chatID)
}

// Checkpoints returns the checkpoints of the chat, newest first.
func (e *Engine) Checkpoints(ctx context.Context) ([]chat.Checkpoint, error) {
	return e.store.ListCheckpoints(ctx, e.chatID)
}

// DeleteCheckpoint deletes a checkpoint if it exists.
func (e *Engine) DeleteCheckpoint(ctx context.Context, name string) error {
	return e.store.DeleteCheckpoint(ctx, e.chatID, name)
}

// Graph returns all messages, branches and checkpoints of the chat, for drawing.
func (e *Engine) Graph(ctx context.Context) (chat.Graph, error) {
	return e.store.Graph(ctx, e.chatID)
}

// moveTo switches to a branch and drops pending messages.
func (e *Engine) moveTo(b chat.Branch) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.branch, e.pending, e.unsure = b, nil, nil
}

// branchFrom creates a branch that ends with a message and is named after another branch.
func (e *Engine) branchFrom(ctx context.Context, at chat.Branch, head chat.Ref, active bool) (chat.BranchInfo, error) {
	count, err := e.store.CountMessages(ctx, e.chatID, string(head))
	if err != nil {
		return chat.BranchInfo{}, err
	}
	for p := (plan{at: at, createdAt: now()}); ; {
		b, err := e.newBranch(ctx, &p, head, active)
		if err != nil {
			return chat.BranchInfo{}, err
		}
		made, err := e.store.CreateBranch(ctx, *b)
		if !isTaken(err) {
			return chat.BranchInfo{Branch: made, MessageCount: count}, err
		}
		p.taken = append(p.taken, b.Name)
	}
}
