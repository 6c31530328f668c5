package engine

import (
	"bytes"
	"context"
	"encoding/json"

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

// UpdateChat updates the chat. Metadata must be a JSON object: its members replace
// those of the same name, and the others stay. To replace it all, use the store.
func (e *Engine) UpdateChat(ctx context.Context, u chat.ChatUpdate) (chat.Chat, error) {
	if u.Metadata == nil {
		return e.store.UpdateChat(ctx, e.chatID, u)
	}
	return e.store.ChangeChat(ctx, e.chatID, func(c chat.Chat) (chat.ChatUpdate, error) {
		metadata, err := e.merged(c.Metadata, u.Metadata)
		return chat.ChatUpdate{Title: u.Title, Metadata: metadata}, err
	})
}

// merged returns metadata with the members of more, in the bytes that both had.
func (e *Engine) merged(metadata, more json.RawMessage) (json.RawMessage, error) {
	members, ok := objectMembers(more)
	if !ok {
		return nil, e.notObject("new metadata")
	}
	if len(metadata) == 0 || string(bytes.TrimSpace(metadata)) == "null" {
		return more, nil
	}
	if _, ok := objectMembers(metadata); !ok {
		return nil, e.notObject("metadata")
	}
	out := string(metadata)
	for _, m := range members {
		name := unquote(string(more[m.start:])[:skipString(string(more), m.start)-m.start])
		out = setMember(out, name, string(more[m.value.from:m.value.to]))
	}
	return json.RawMessage(out), nil
}

// objectMembers is rawMembers for bytes that may not be JSON.
func objectMembers(data json.RawMessage) ([]rawMember, bool) {
	if !json.Valid(data) {
		return nil, false
	}
	return rawMembers(string(data))
}

func (e *Engine) notObject(what string) error {
	return &chat.Error{Subject: chat.SubjectChat, ID: e.chatID, Err: chat.ErrInvalid, Detail: what + " is not a JSON object"}
}
