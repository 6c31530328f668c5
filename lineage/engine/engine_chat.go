package engine

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/chat"
)

// Chat returns the chat.
func (e *Engine) Chat(ctx context.Context) (chat.Chat, error) {
	c, err := e.store.Chat(ctx, e.chatID)
	if err != nil {
		return chat.Chat{}, err
	}
	if c == nil {
		return chat.Chat{}, &chat.Error{Subject: chat.SubjectChat, ID: e.chatID, Err: chat.ErrNotFound}
	}
	return *c, nil
}

// UpdateChat updates the chat. Metadata must be a JSON object: its members replace those of the
// same name, other members stay. To replace all metadata, use the store.
func (e *Engine) UpdateChat(ctx context.Context, u chat.ChatUpdate) (chat.Chat, error) {
	if u.Metadata == nil {
		return e.store.UpdateChat(ctx, e.chatID, u)
	}
	return e.store.ChangeChat(ctx, e.chatID, func(c chat.Chat) (chat.ChatUpdate, error) {
		metadata, err := e.merged(c.Metadata, u.Metadata)
		return chat.ChatUpdate{Title: u.Title, Metadata: metadata}, err
	})
}

// merged returns metadata with the members of more, without rewriting other bytes.
func (e *Engine) merged(metadata, more json.RawMessage) (json.RawMessage, error) {
	if !isObject(more) {
		return nil, e.notObject("new metadata")
	}
	if len(metadata) == 0 || string(bytes.TrimSpace(metadata)) == "null" {
		return more, nil
	}
	if !isObject(metadata) {
		return nil, e.notObject("metadata")
	}
	out := metadata
	for m := range rawjson.Members(more) {
		out = setMember(out, m.Key, m.Value)
	}
	return out, nil
}

func (e *Engine) notObject(what string) error {
	return &chat.Error{Subject: chat.SubjectChat, ID: e.chatID, Err: chat.ErrInvalid, Detail: what + " is not a JSON object"}
}

// current reads the branch, which may have been renamed.
func (e *Engine) current(ctx context.Context) (chat.Branch, error) {
	last := e.seen()
	b, err := e.findBranch(ctx, last.Name, last.ID)
	if err != nil {
		return chat.Branch{}, err
	}
	if b == nil {
		if _, err := e.Chat(ctx); err != nil {
			return chat.Branch{}, err
		}
		return chat.Branch{}, e.noBranch(last.Name)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.branch = *b
	return *b, nil
}
