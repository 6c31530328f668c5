package engine

import (
	"context"

	"github.com/lineage-store/lineage/internal/fit"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/message"
)

// Resolved is what to send to a model.
type Resolved struct {
	// SystemPrompt is the rendered context, followed by the summaries that replace omitted
	// messages, each as a fragment named summary.
	SystemPrompt string `json:"systemPrompt"`
	// Messages are those of the branch, followed by pending ones, as UI messages. A stored UI
	// message is unchanged, others are converted by package message.
	Messages []UIMessage `json:"messages"`
	// Summaries are the summaries in the prompt.
	Summaries []chat.Summary `json:"-"`
	// Omitted is set if earlier messages are left out that no summary replaces.
	Omitted bool `json:"-"`
	// Tokens is the total number of tokens.
	Tokens int `json:"-"`
	// History is the source of Messages, each with its id in the chat. Losses are what UI messages
	// cannot express.
	History []message.Message `json:"-"`
	Losses  []message.Loss    `json:"-"`
}

// Encode returns the messages in the format of an API. The system prompt is the first message, or
// System if the format has it separately. Losses refer to History.
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

// withDefaults sets the functions that are nil.
func (o ResolveOptions) withDefaults() ResolveOptions {
	if o.Renderer == nil {
		o.Renderer = XMLRenderer{}
	}
	if o.Tokens == nil {
		o.Tokens = lineage.EstimateTokens
	}
	return o
}

// Resolve returns what to send to a model: the context and the history after a save. So a pending
// new version of a saved message replaces it and everything after it. Nothing is changed. Messages
// without content, such as erased ones and the empty answer of an unfinished turn, and stored data
// that is not a message are omitted. Messages omitted because of Last or Budget are replaced by
// summaries if the store has any. A tool call and its result are sent together or not at all.
func (e *Engine) Resolve(ctx context.Context, o ResolveOptions) (*Resolved, error) {
	if o.Last < 0 || o.Budget < 0 {
		return nil, &chat.Error{Subject: chat.SubjectChat, ID: e.chatID, Err: chat.ErrInvalid, Detail: "negative limit"}
	}
	o = o.withDefaults()
	end, err := e.start(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	fragments := e.Fragments()
	prompt, err := o.Renderer.Render(fragments...)
	if err != nil {
		return nil, err
	}
	at, err := e.current(ctx)
	if err != nil {
		return nil, err
	}
	h, err := e.history(ctx, at.HeadMessageID, o)
	if err != nil {
		return nil, err
	}
	defer h.close()
	room := fit.Unlimited
	if o.Budget > 0 {
		room = o.Budget - cost(o.Tokens, prompt)
	}
	from, err := h.load(o.Last, room)
	if err != nil {
		return nil, err
	}
	var summaries []chat.Summary
	choice, err := fit.Choose(ctx, h, fit.Options{
		Length: h.Length, From: from, Room: room,
		Summaries: func(ctx context.Context) ([]fit.Summary, error) {
			summaries, err = e.store.Summaries(ctx, e.chatID, at.ID)
			if err != nil || len(summaries) == 0 {
				return nil, err
			}
			return h.summaries(ctx, summaries)
		},
	})
	if err != nil {
		return nil, err
	}
	resolved := &Resolved{SystemPrompt: prompt, Messages: []UIMessage{}}
	for _, i := range choice.Summaries {
		resolved.Summaries = append(resolved.Summaries, summaries[i])
		fragments = append(fragments, New("summary", summaries[i].Text))
	}
	if len(resolved.Summaries) > 0 {
		if resolved.SystemPrompt, err = o.Renderer.Render(fragments...); err != nil {
			return nil, err
		}
	}
	resolved.Tokens = cost(o.Tokens, resolved.SystemPrompt)
	if err := resolved.addHistory(h, choice); err != nil {
		return nil, err
	}
	return resolved, resolved.encode()
}

// addHistory adds the chosen messages.
func (r *Resolved) addHistory(h *history, choice fit.Choice) error {
	r.Omitted = h.omits(choice)
	for p := choice.Start; p <= h.Length; p++ {
		t, err := h.at(p)
		if err != nil {
			return err
		}
		r.History = append(r.History, t.messages...)
		r.Tokens += t.tokens
	}
	return nil
}

// encode converts the history to UI messages.
func (r *Resolved) encode() error {
	encoded, err := message.Encode(message.UI, r.History)
	if err != nil {
		return err
	}
	r.Losses = encoded.Losses
	for _, item := range encoded.Items {
		m, err := DecodeMessage(item)
		if err != nil {
			return err
		}
		r.Messages = append(r.Messages, m)
	}
	return nil
}
