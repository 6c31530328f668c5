package engine

import (
	"context"
	"strconv"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/message"
)

// Resolved is what to send to a model.
type Resolved struct {
	// SystemPrompt is the context, rendered.
	SystemPrompt string `json:"systemPrompt"`
	// Messages are those of the branch and after them those pending, as UI messages: a
	// stored one that is a UI message as it is, any other as package message has it.
	Messages []UIMessage `json:"messages"`
	// History is what Messages were made from, each message under the id that it has in the
	// chat, and Losses what UI messages cannot express of it.
	History []message.Message `json:"-"`
	Losses  []message.Loss    `json:"-"`
}

// Encode returns the messages in a dialect, as its API accepts them. The system prompt is the
// first of them, or in System where the dialect has it apart. Losses are about History.
func (r *Resolved) Encode(to message.Dialect) (*message.Encoded, error) {
	if r.SystemPrompt == "" {
		return message.Encode(to, r.History)
	}
	prompt := message.Message{ID: "system-prompt", Role: RoleSystem, Parts: []message.Part{{Kind: message.TextKind, Text: r.SystemPrompt}}}
	out, err := message.Encode(to, append([]message.Message{prompt}, r.History...))
	if err != nil {
		return nil, err
	}
	for i := range out.Losses {
		out.Losses[i].Message--
	}
	return out, nil
}

// Resolve returns what to send to a model, the context rendered by r; nil is XML.
// It changes nothing. A pending new version of a saved message comes last, like any
// other: only a save takes it out of the line that it replaces. Messages that say nothing,
// such as erased ones, and stored data that is no message are left out.
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
			if m.Type == chat.TypeMessage || m.Type == "" {
				resolved.add(m.ID, m.Name, m.Data)
			}
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
		data, err := m.Encode()
		if err != nil {
			return nil, messageError(f.ID, err)
		}
		resolved.add(m.ID, f.Name, data)
	}
	said, err := message.Encode(message.UI, resolved.History)
	if err != nil {
		return nil, err
	}
	resolved.Losses = said.Losses
	for _, item := range said.Items {
		m, err := DecodeMessage(item)
		if err != nil {
			return nil, err
		}
		resolved.Messages = append(resolved.Messages, m)
	}
	return resolved, nil
}

// add adds what is stored under an id to the history. Stored data may be several messages.
func (r *Resolved) add(id, role string, data []byte) {
	for i, m := range message.Decode(data, content.TypeJSON, role) {
		if m.ID = id; i > 0 {
			m.ID += "-" + strconv.Itoa(i+1)
		}
		r.History = append(r.History, m)
	}
}
