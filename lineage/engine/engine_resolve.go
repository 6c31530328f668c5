package engine

import (
	"context"
	"slices"
	"strconv"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/fit"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/message"
)

// ResolveOptions configure Resolve.
type ResolveOptions struct {
	// Renderer renders the context. Default XMLRenderer.
	Renderer Renderer
	// Last, when not zero, limits the number of messages: the last ones with content are sent,
	// including pending ones.
	Last int
	// Budget, when not zero, limits the total number of tokens. As many of the latest messages as
	// fit are sent.
	Budget int
	// Tokens counts the tokens of a text. Default lineage.EstimateTokens.
	Tokens func(text string) int
	// AllRevisions sends all revisions of a document, and not only the latest.
	AllRevisions bool
}

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
	// Omitted is the number of messages that are left out and not covered by a summary.
	Omitted int `json:"-"`
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

// Resolve returns what to send to a model: the context and the history after a save. So a pending
// new version of a saved message replaces it and everything after it. Nothing is changed. Messages
// without content, such as erased ones and the empty answer of an unfinished turn, and stored data
// that is not a message are omitted. Messages omitted because of Last or Budget are replaced by
// summaries if the store has any. A tool call and its result are sent together or not at all.
func (e *Engine) Resolve(ctx context.Context, o ResolveOptions) (*Resolved, error) {
	if o.Last < 0 || o.Budget < 0 {
		return nil, &chat.Error{Subject: chat.SubjectChat, ID: e.chatID, Err: chat.ErrInvalid, Detail: "negative limit"}
	}
	if o.Renderer == nil {
		o.Renderer = XMLRenderer{}
	}
	if o.Tokens == nil {
		o.Tokens = lineage.EstimateTokens
	}
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
	h, err := e.history(ctx, at.HeadMessageID)
	if err != nil {
		return nil, err
	}
	if !o.AllRevisions {
		h.leaveLatestRevisions()
	}
	h.measure(o.Tokens)
	room := fit.Unlimited
	if o.Budget > 0 {
		room = o.Budget - cost(o.Tokens, prompt)
	}
	var summaries []chat.Summary
	choice, err := fit.Choose(ctx, h, fit.Options{
		Length: uint64(len(h.turns)), From: h.last(o.Last), Room: room,
		Summaries: func(ctx context.Context) ([]fit.Summary, error) {
			summaries, err = e.store.Summaries(ctx, e.chatID, at.ID)
			if err != nil {
				return nil, err
			}
			return h.summaries(summaries, o)
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
	resolved.Omitted = h.omitted(int(choice.Start), resolved.Summaries)
	resolved.Tokens = cost(o.Tokens, resolved.SystemPrompt)
	for i := int(choice.Start) - 1; i < len(h.turns); i++ {
		resolved.History = append(resolved.History, h.turns[i].messages...)
		resolved.Tokens += h.turns[i].tokens
	}
	return resolved, resolved.encode()
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

// cost returns the tokens of a text as a message, 0 for an empty one.
func cost(tokens func(string) int, text string) int {
	if text == "" {
		return 0
	}
	return tokens(text) + fit.Overhead
}

// turn has the messages at a position of a history.
type turn struct {
	messages []message.Message // empty if there is no content
	tokens   int
}

// history is the history that could be sent to a model. It implements fit.History.
type history struct {
	turns []turn
	// saved is the number of saved messages among the turns.
	saved int
	fit.Calls
}

// history returns the history after a save.
func (e *Engine) history(ctx context.Context, head chat.Ref) (*history, error) {
	pending, err := e.concrete(ctx, head, e.waiting())
	if err != nil {
		return nil, err
	}
	l, err := e.line(ctx, head, pending.fragments)
	if err != nil {
		return nil, err
	}
	h := &history{}
	if l.after != "" {
		for m, err := range e.store.MessageChain(ctx, e.chatID, string(l.after)) {
			if err != nil {
				return nil, err
			}
			messages, err := e.messagesIn(m)
			if err != nil {
				return nil, messageError(m.ID, err)
			}
			h.turns = append(h.turns, turn{messages: messages})
		}
	}
	h.saved = len(h.turns)
	for _, f := range l.fragments {
		m, err := f.Codec.Decode()
		if err != nil {
			return nil, messageError(f.ID, err)
		}
		data, err := m.Encode()
		if err != nil {
			return nil, messageError(f.ID, err)
		}
		h.turns = append(h.turns, turn{messages: decoded(m.ID, f.Name, data)})
	}
	return h, nil
}

// messagesIn converts a stored message.
func (e *Engine) messagesIn(m chat.Message) ([]message.Message, error) {
	if m.Type != chat.TypeMessage && m.Type != "" {
		return nil, nil
	}
	if e.decode != nil {
		own, known, err := e.decode(m)
		if err != nil {
			return nil, err
		}
		if known {
			data, err := own.Encode()
			if err != nil {
				return nil, err
			}
			return decoded(m.ID, own.Role, data), nil
		}
	}
	return decoded(m.ID, m.Name, m.Data), nil
}

// decoded returns the messages with content in data. The first has the given id.
func decoded(id, role string, data []byte) (messages []message.Message) {
	for i, m := range message.Decode(data, content.TypeJSON, role) {
		if m.ID = id; i > 0 {
			m.ID += "-" + strconv.Itoa(i+1)
		}
		if hasContent(&m) {
			messages = append(messages, m)
		}
	}
	return messages
}

// hasContent reports whether a message has a part other than empty texts and step marks.
func hasContent(m *message.Message) bool {
	for i := range m.Parts {
		switch p := &m.Parts[i]; p.Kind {
		case message.TextKind, message.ReasoningKind:
			if p.Text != "" {
				return true
			}
		case message.DataKind:
			if p.Name != "step-start" {
				return true
			}
		default:
			return true
		}
	}
	return false
}

// leaveLatestRevisions removes superseded revisions of documents.
func (h *history) leaveLatestRevisions() {
	latest := make(map[string]uint64)
	for _, t := range h.turns {
		for i := range t.messages {
			for k := range t.messages[i].Parts {
				if r := chat.RevisionOf(t.messages[i].Parts[k].Given); r.Document != "" {
					latest[r.Document] = max(latest[r.Document], r.Number)
				}
			}
		}
	}
	if len(latest) == 0 {
		return
	}
	for i := range h.turns {
		t := &h.turns[i]
		for k := range t.messages {
			m := &t.messages[k]
			n := len(m.Parts)
			m.Parts = slices.DeleteFunc(m.Parts, func(p message.Part) bool {
				r := chat.RevisionOf(p.Given)
				return r.Number < latest[r.Document]
			})
			if len(m.Parts) < n {
				m.Given = nil
			}
		}
		t.messages = slices.DeleteFunc(t.messages, func(m message.Message) bool { return !hasContent(&m) })
	}
}

// measure counts the tokens of all turns.
func (h *history) measure(tokens func(string) int) {
	for i := range h.turns {
		t := &h.turns[i]
		for k := range t.messages {
			t.tokens += tokens(t.messages[k].String()) + fit.Overhead
		}
	}
	h.Calls = fit.Calls{Length: uint64(len(h.turns)), Uses: func(_ context.Context, position uint64) ([]fit.Use, error) {
		return fit.Uses(h.turns[position-1].messages), nil
	}}
}

// last returns the position of the first of the last n turns with content.
func (h *history) last(n int) uint64 {
	for i := len(h.turns); n > 0 && i > 0; i-- {
		if len(h.turns[i-1].messages) == 0 {
			continue
		}
		if n--; n == 0 {
			return uint64(i)
		}
	}
	return 1
}

// summaries measures summaries. Those of messages that are not in the history are left out.
func (h *history) summaries(all []chat.Summary, o ResolveOptions) ([]fit.Summary, error) {
	out := make([]fit.Summary, len(all))
	for i, s := range all {
		text, err := o.Renderer.Render(New("summary", s.Text))
		if err != nil {
			return nil, err
		}
		out[i] = fit.Summary{First: uint64(s.First), Last: uint64(s.Last), Level: uint64(s.Level), Tokens: cost(o.Tokens, text)}
		if s.Last > h.saved {
			out[i].Last = uint64(len(h.turns)) + 1
		}
	}
	return out, nil
}

// omitted returns the number of turns before a position that have content and no summary.
func (h *history) omitted(start int, summaries []chat.Summary) (n int) {
	for i := 1; i < start && i <= len(h.turns); i++ {
		for len(summaries) > 0 && summaries[0].Last < i {
			summaries = summaries[1:]
		}
		if len(h.turns[i-1].messages) > 0 && (len(summaries) == 0 || i < summaries[0].First) {
			n++
		}
	}
	return n
}

// Tokens implements fit.History.
func (h *history) Tokens(_ context.Context, position uint64) (int, error) {
	return h.turns[position-1].tokens, nil
}
