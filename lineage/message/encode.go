package message

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// ErrUnknownDialect is returned for a dialect that is not one of Dialects.
var ErrUnknownDialect = errors.New("unknown dialect of messages")

// Encode writes a history in a dialect, as an API accepts it. It reports what that loses.
// Calls in the last turn may be without results, if all are: the caller is about to answer them.
func Encode(to Dialect, history []Message) (*Encoded, error) {
	if !slices.Contains(Dialects(), to) {
		return nil, fmt.Errorf("%w %q", ErrUnknownDialect, to)
	}
	e := &encoder{to: to, messages: history}
	if to == Text {
		for i := range history {
			if len(history[i].Parts) > 0 {
				e.items = append(e.items, quote(history[i].String()))
			}
		}
		return e.encoded(), nil
	}
	e.collect()
	e.pair()
	e.express()
	e.identify()
	if to == UI {
		e.ui()
		return e.encoded(), nil
	}
	turns := e.turns()
	e.closeCalls(turns)
	switch to {
	case Chat:
		e.chat(turns)
	case Responses:
		e.responses(turns)
	case Anthropic:
		e.anthropic(turns)
	}
	return e.encoded(), nil
}

// ChatLog writes a message as logs and training data have those of chat completions: a call
// and its result apart, and everything else as it was said, whoever would refuse it.
func ChatLog(m Message) []json.RawMessage {
	e := &encoder{to: Chat, messages: []Message{m}, loose: true}
	e.collect()
	e.pair()
	e.express()
	e.identify()
	e.chat(e.turns())
	if len(e.items) == 0 { // it says nothing
		given := asLogged(m.Given)
		if given == nil {
			given = new(object).text("role", m.Role).text("content", "").bytes()
		}
		e.items = append(e.items, given)
	}
	return e.encoded().Items
}

// encoder writes a history in a dialect.
type encoder struct {
	to       Dialect
	loose    bool // for ChatLog
	messages []Message
	units    []*unit
	// whole are the messages that the dialect takes as they were given, nil for others.
	whole  []json.RawMessage
	system []string
	items  []json.RawMessage
	losses []Loss
}

// unit is a part of the history on its way into the dialect.
type unit struct {
	message, part int
	p             *Part
	role          string
	// id and tool are those of a call, as the dialect takes them.
	id, tool string
	// result is that of a call, and call that of a result.
	result, call *unit
	// raw is what the dialect writes for what is neither a call nor a result.
	raw json.RawMessage
	// isText says that raw is a text of the kind that may be written as a string.
	isText bool
	// changed says that it is not what was given; gone that it is left out.
	changed, gone bool
	turn          *turn
}

// byMessage divides units where a message ends.
func byMessage(units []*unit) iter.Seq[[]*unit] {
	return func(yield func([]*unit) bool) {
		for len(units) > 0 {
			n := 1
			for n < len(units) && units[n].message == units[0].message {
				n++
			}
			if !yield(units[:n]) {
				return
			}
			units = units[n:]
		}
	}
}

func (e *encoder) encoded() *Encoded {
	for i := range e.items {
		if !e.loose {
			e.items[i] = asUnicode(e.items[i])
		}
	}
	slices.SortStableFunc(e.losses, func(a, b Loss) int { return a.Message - b.Message })
	return &Encoded{System: e.system, Items: e.items, Losses: e.losses}
}

func (e *encoder) lose(u *unit, reason string, args ...string) {
	e.loss(u.message, u.part, reason, args)
}

func (e *encoder) loseWhole(message int, reason string, args ...string) {
	e.loss(message, -1, reason, args)
}

// maxNamed is how much of a name a reason repeats, and how many names.
const maxNamed = 80

func (e *encoder) loss(message, part int, reason string, names []string) {
	short := make([]any, len(names))
	for i, name := range names {
		if len(name) > maxNamed {
			name = strings.ToValidUTF8(name[:maxNamed], "") + "…"
		}
		short[i] = name
	}
	e.losses = append(e.losses, Loss{Message: message, Part: part, Reason: fmt.Sprintf(reason, short...)})
}

// collect lists the units of the history, and the messages that the dialect takes as given.
func (e *encoder) collect() {
	e.whole = make([]json.RawMessage, len(e.messages))
	begun := false
	for i := range e.messages {
		m := &e.messages[i]
		role := e.roleOf(m.Role)
		if !e.loose && role != strings.ToLower(m.Role) && role != roles[strings.ToLower(m.Role)] && role != "system" && len(m.Parts) > 0 {
			e.loseWhole(i, "no role %q: sent as %s", m.Role, role)
		}
		if e.to == Anthropic && isSystem(role) {
			if !begun {
				e.leadingSystem(i)
				continue
			}
			e.loseWhole(i, "no system messages within a conversation: sent as user")
			role = "user"
		}
		begun = begun || len(m.Parts) > 0
		e.whole[i] = e.asGiven(i)
		for k := range m.Parts {
			p := &m.Parts[k]
			u := &unit{message: i, part: k, p: p, role: role}
			switch {
			case p.Kind == CallKind:
				u.role = "assistant"
			case p.Kind == ResultKind && p.Hosted:
				u.role = "assistant"
			case p.Kind == ResultKind:
				u.role = "tool"
			case role == "tool":
				u.role = "user"
			}
			e.units = append(e.units, u)
		}
		if m.Name != "" && m.Name != m.Role && e.whole[i] == nil && !e.loose && role != "tool" && (e.to != Chat || !isSpeaker(m.Name)) && len(m.Parts) > 0 {
			e.loseWhole(i, "no place for the name %q", m.Name)
		}
	}
}

// roles are the names that formats have for roles.
var roles = map[string]string{
	"user": "user", "human": "user", "prompter": "user", "assistant": "assistant", "ai": "assistant", "gpt": "assistant", "model": "assistant", "bot": "assistant",
	"chatbot": "assistant", "system": "system", "developer": "developer", "tool": "tool", "function": "tool",
}

func isSystem(role string) bool { return role == "system" || role == "developer" }

// roleOf returns the role that a role is in the dialect. Who is unknown is a user.
func (e *encoder) roleOf(role string) string {
	if e.loose && !isTool(role) {
		return role
	}
	is := roles[strings.ToLower(role)]
	switch {
	case is == "":
		return "user"
	case is == "developer" && e.to != Chat && e.to != Responses:
		return "system"
	}
	return is
}

// leadingSystem takes a message out of the history that is a system prompt.
func (e *encoder) leadingSystem(i int) {
	var said []string
	for k := range e.messages[i].Parts {
		switch p := &e.messages[i].Parts[k]; {
		case p.Kind == TextKind && !isBlank(p.Text):
			said = append(said, strings.ToValidUTF8(p.Text, "\ufffd"))
		case p.Kind != TextKind:
			e.losses = append(e.losses, Loss{Message: i, Part: k, Reason: "a system prompt has only texts"})
		}
	}
	if len(said) > 0 {
		e.system = append(e.system, strings.Join(said, "\n\n"))
	}
}

// saidIn are the keys of messages that say something: a message that the dialect takes only
// without them is not taken as it was given.
var saidIn = setOf("content", "parts", "refusal", "reasoning_content", "reasoning", "tool_calls", "function_call", "audio", "tool_call_id", "role", "summary", "output", "input", "arguments")

// asGiven returns a message as it was given, nil if the dialect does not take it so.
func (e *encoder) asGiven(i int) json.RawMessage {
	m := &e.messages[i]
	if m.Given == nil || len(m.Parts) == 0 {
		return nil
	}
	if e.loose {
		return asLogged(m.Given)
	}
	is := map[Dialect]*shape{Chat: chatMessage, Responses: responsesItem, Anthropic: anthropicMessage, UI: uiMessage}[e.to]
	given := m.Given
	if e.to == UI {
		given = e.identified(i)
	}
	var left []string
	out, ok := is.take(given, &left)
	if !ok || slices.ContainsFunc(left, func(key string) bool { return saidIn[key] }) {
		return nil
	}
	e.leftOut(i, -1, left)
	return out
}

// ofAnswers are the members in which an API says of its answer what is no part of it.
var ofAnswers = setOf("type", "id", "model", "stop_reason", "stop_sequence", "usage")

// leftOut reports members that were left out, except those of ofAnswers.
func (e *encoder) leftOut(message, part int, keys []string) {
	keys = slices.DeleteFunc(keys, func(key string) bool { return ofAnswers[key] })
	if len(keys) > 0 {
		slices.Sort(keys)
		e.loss(message, part, "no place for %s", []string{strings.Join(slices.Compact(keys), ", ")})
	}
}

// given returns a unit as it was given, if the dialect takes it so.
func (e *encoder) given(u *unit, is *shape) (json.RawMessage, bool) {
	if u.p.Given == nil || is == nil {
		return nil, false
	}
	var left []string
	out, ok := is.take(u.p.Given, &left)
	if !ok || slices.ContainsFunc(left, func(key string) bool { return saidIn[key] }) {
		return nil, false
	}
	if e.whole[u.message] == nil {
		e.leftOut(u.message, u.part, left)
	}
	return out, true
}

// intact reports whether units are all of one message, as it was given and as it is taken.
func (e *encoder) intact(units []*unit) (json.RawMessage, bool) {
	i := units[0].message
	if e.whole[i] == nil || len(units) != len(e.messages[i].Parts) {
		return nil, false
	}
	for k, u := range units {
		if u.message != i || u.part != k || u.changed {
			return nil, false
		}
	}
	return e.whole[i], true
}
