package engine

import (
	"context"
	"encoding/json"

	"github.com/lineage-store/lineage/lineage/chat"
)

// Resolved is what to send to a model.
type Resolved struct {
	// SystemPrompt is the context, rendered.
	SystemPrompt string `json:"systemPrompt"`
	// Messages are those of the branch and after them those pending.
	Messages []UIMessage `json:"messages"`
}

// Resolve returns what to send to a model, the context rendered by r; nil is XML.
// It changes nothing. A pending new version of a saved message comes last, like any
// other: only a save takes it out of the line that it replaces.
func (e *Engine) Resolve(ctx context.Context, r Renderer) (*Resolved, error) {
	end, err := e.start(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	if r == nil {
		r = XMLRenderer{}
	}
	prompt, err := r.Render(e.Fragments()...)
	if err != nil {
		return nil, err
	}
	at, err := e.current(ctx)
	if err != nil {
		return nil, err
	}
	resolved := &Resolved{SystemPrompt: prompt, Messages: []UIMessage{}}
	if at.HeadMessageID != "" {
		for m, err := range e.store.MessageChain(ctx, string(at.HeadMessageID)) {
			if err != nil {
				return nil, err
			}
			said, err := messageOf(m)
			if err != nil {
				return nil, err
			}
			resolved.Messages = append(resolved.Messages, said)
		}
	}
	pending, err := e.concrete(ctx, at.HeadMessageID, e.Pending())
	if err != nil {
		return nil, err
	}
	for _, f := range pending.fragments {
		m, err := f.Codec.Decode()
		if err != nil {
			return nil, messageError(f.ID, err)
		}
		resolved.Messages = append(resolved.Messages, m)
	}
	return resolved, nil
}

// messageOf returns the message that is kept in a chat, under the id that it has
// there. What is no object is text; what was erased says nothing.
func messageOf(m chat.Message) (UIMessage, error) {
	said, err := storedMessage(m.Data)
	if err != nil {
		return UIMessage{}, &chat.Error{Subject: chat.SubjectMessage, ID: m.ID, ChatID: m.ChatID, Err: err}
	}
	said.ID = m.ID
	if said.Role == "" {
		said.Role = m.Name
	}
	return said, nil
}

func storedMessage(data json.RawMessage) (UIMessage, error) {
	if _, ok := objectMembers(data); ok || !json.Valid(data) {
		return DecodeMessage(data)
	}
	var text any
	if err := json.Unmarshal(data, &text); err != nil {
		return UIMessage{}, err
	}
	switch text := text.(type) {
	case nil:
		return UIMessage{}, nil
	case string:
		return UIMessage{Parts: []Part{TextPart(text)}}, nil
	}
	return UIMessage{Parts: []Part{TextPart(string(data))}}, nil
}
