package engine

import (
	"context"
	"iter"
	"slices"
	"strconv"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/fit"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/message"
)

// historyItem has the messages at a position of a history.
type historyItem struct {
	messages []message.Message // empty if there is no content
	tokens   int
}

// history is the history after a save: what could be sent to a model. It is read from its end, as far as needed. It
// implements fit.History.
//
// Before it is read to its start, its length is unknown. Its positions then count as if the length were
// unknownLength.
type history struct {
	engine  *Engine
	options ResolveOptions
	// after is the last saved message of the history, which pending items follow.
	after   chat.Ref
	pending int
	// items are the items read so far, the last one first.
	items []historyItem
	whole bool
	next  func() (chat.Message, error, bool)
	stop  func()
	// latest are the latest revisions of documents in items.
	latest map[string]uint64
	// outlines are the summaries of the history. before is the position before its first message, as far as it was
	// needed.
	outlines []fit.Summary
	before   uint64
	fit.Calls
}

// unknownLength is larger than the length of any history.
const unknownLength = 1 << 40

// history returns the history after a save.
func (e *Engine) history(ctx context.Context, head chat.Ref, o ResolveOptions) (*history, error) {
	pending, err := e.concrete(ctx, head, e.waiting())
	if err != nil {
		return nil, err
	}
	l, err := e.pendingHistory(ctx, head, pending.fragments)
	if err != nil {
		return nil, err
	}
	h := &history{engine: e, options: o, after: l.after, pending: len(l.fragments), whole: l.after == "", latest: make(map[string]uint64)}
	for _, f := range slices.Backward(l.fragments) {
		m, err := f.Codec.Decode()
		if err != nil {
			return nil, messageError(f.ID, err)
		}
		data, err := m.Encode()
		if err != nil {
			return nil, messageError(f.ID, err)
		}
		h.add(decoded(m.ID, f.Name, data))
	}
	h.stop = func() {}
	if !h.whole {
		h.next, h.stop = iter.Pull2(e.store.Ancestors(ctx, e.chatID, string(l.after)))
	}
	return h, nil
}

func (h *history) close() { h.stop() }

// load reads as much of the history as can be sent, and one item more: the last n items with content, or as many as
// fit into room. It returns the position of the first of the last n.
func (h *history) load(n, room int) (from uint64, err error) {
	first := 0 // the number of items from the first of the last n on
	for i, items := 0, 0; room >= 0 && first == 0; i++ {
		if more, err := h.readTo(i + 1); err != nil || !more {
			return 1, h.loaded(err)
		}
		t := &h.items[i]
		if len(t.messages) > 0 {
			items++
		}
		room -= t.tokens
		if n > 0 && items == n {
			first = i + 1
		}
	}
	if first == 0 {
		return 1, h.loaded(nil)
	}
	_, err = h.readTo(first + 1)
	err = h.loaded(err)
	return h.Length - uint64(first) + 1, err
}

// loaded sets the length of the history.
func (h *history) loaded(err error) error {
	h.Length = unknownLength
	if h.whole {
		h.Length = uint64(len(h.items))
	}
	h.ToolParts = func(_ context.Context, position uint64) ([]fit.ToolPart, error) {
		t, err := h.at(position)
		return fit.ToolParts(t.messages), err
	}
	return err
}

// readTo reads until there are n items, and reports whether there are n.
func (h *history) readTo(n int) (bool, error) {
	for len(h.items) < n {
		if more, err := h.read(); err != nil || !more {
			return false, err
		}
	}
	return true, nil
}

// read reads one more item, and reports whether there was one.
func (h *history) read() (bool, error) {
	if h.whole {
		return false, nil
	}
	m, err, ok := h.next()
	if !ok {
		h.whole = true
		return false, nil
	}
	if err != nil {
		return false, err
	}
	messages, err := h.engine.messagesIn(m)
	if err != nil {
		return false, messageError(m.ID, err)
	}
	h.add(messages)
	return true, nil
}

// add adds the item before those that were read.
func (h *history) add(messages []message.Message) {
	t := historyItem{messages: messages}
	if !h.options.AllRevisions {
		h.leaveLatestRevisions(&t)
	}
	for i := range t.messages {
		t.tokens += h.options.Tokens(t.messages[i].String()) + fit.Overhead
	}
	h.items = append(h.items, t)
}

// leaveLatestRevisions removes revisions of documents that a later item supersedes.
func (h *history) leaveLatestRevisions(t *historyItem) {
	superseded := false
	for k := range t.messages {
		for i := range t.messages[k].Parts {
			if r := chat.RevisionOf(t.messages[k].Parts[i].Given); r.Document != "" {
				superseded = superseded || h.latest[r.Document] > 0 && r.Number != h.latest[r.Document]
				h.latest[r.Document] = max(h.latest[r.Document], r.Number)
			}
		}
	}
	if !superseded {
		return
	}
	for k := range t.messages {
		m := &t.messages[k]
		n := len(m.Parts)
		m.Parts = slices.DeleteFunc(m.Parts, func(p message.Part) bool {
			r := chat.RevisionOf(p.Given)
			return r.Number < h.latest[r.Document]
		})
		if len(m.Parts) < n {
			m.Given = nil
		}
	}
	t.messages = slices.DeleteFunc(t.messages, func(m message.Message) bool { return !hasContent(&m) })
}

// at returns the item at a position. Before the first message the items are empty.
func (h *history) at(position uint64) (*historyItem, error) {
	i := int(h.Length - position)
	there, err := h.readTo(i + 1)
	if err != nil || !there {
		return &historyItem{}, err
	}
	return &h.items[i], nil
}

// summaries measures summaries and converts their positions to those of the history. Summaries of messages that are
// not in the history are left out.
func (h *history) summaries(ctx context.Context, all []chat.Summary) ([]fit.Summary, error) {
	saved, err := h.engine.store.CountMessages(ctx, h.engine.chatID, string(h.after))
	if err != nil {
		return nil, err
	}
	h.before = h.Length - uint64(saved+h.pending)
	h.outlines = make([]fit.Summary, len(all))
	for i, s := range all {
		text, err := h.options.Renderer.Render(New("summary", s.Text))
		if err != nil {
			return nil, err
		}
		h.outlines[i] = fit.Summary{First: h.before + uint64(s.First), Last: h.before + uint64(s.Last), Level: uint64(s.Level), Tokens: cost(h.options.Tokens, text)}
		if s.Last > saved {
			h.outlines[i].Last = h.Length + 1
		}
	}
	return h.outlines, nil
}

// omits reports whether a choice leaves out items that none of its summaries replaces.
func (h *history) omits(c fit.Choice) bool {
	next := h.before + 1
	if h.whole {
		next = h.Length - uint64(len(h.items)) + 1
	}
	for _, i := range c.Summaries {
		s := &h.outlines[i]
		if h.says(next, s.First) {
			return true
		}
		next = max(next, s.Last+1)
	}
	return h.says(next, c.Start)
}

// says reports whether an item in a range of positions has content. Items that were not read count as having some.
func (h *history) says(from, to uint64) bool {
	for p := to - 1; p >= from; p-- {
		i := h.Length - p
		if i >= uint64(len(h.items)) || len(h.items[i].messages) > 0 {
			return true
		}
	}
	return false
}

// Tokens implements fit.History.
func (h *history) Tokens(_ context.Context, position uint64) (int, error) {
	t, err := h.at(position)
	return t.tokens, err
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

// cost returns the tokens of a text as a message, 0 for an empty one.
func cost(tokens func(string) int, text string) int {
	if text == "" {
		return 0
	}
	return tokens(text) + fit.Overhead
}
