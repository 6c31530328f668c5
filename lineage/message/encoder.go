package message

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// encoder writes a history in a dialect.
type encoder struct {
	to       Dialect
	messages []Message
	units    []*unit
	// whole are the messages that the dialect accepts as given, nil for the others.
	whole  []json.RawMessage
	system []string
	items  []json.RawMessage
	losses []Loss
}

// unit is a part of the history during encoding.
type unit struct {
	message, part int
	p             *Part
	role          string
	// id and tool belong to a call. They are in a form that the dialect accepts.
	id, tool string
	// result is the result of a call; call is the call of a result.
	result, call *unit
	// raw is the encoded part, unless it is a call or result.
	raw json.RawMessage
	// isText is set if raw is a text that may also be written as a string.
	isText bool
	// changed is set if the unit differs from the given one, gone if it is omitted.
	changed, gone bool
	turn          *turn
}

// byMessage groups units by message.
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
		e.items[i] = asUnicode(e.items[i])
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

// maxNamed limits the length of names in a loss, and their number.
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

// collect lists the units of the history, and the messages that the dialect accepts as given.
func (e *encoder) collect() {
	e.whole = make([]json.RawMessage, len(e.messages))
	begun := false
	for i := range e.messages {
		m := &e.messages[i]
		role := e.roleOf(m.Role)
		if role != strings.ToLower(m.Role) && role != roles[strings.ToLower(m.Role)] && role != "system" && len(m.Parts) > 0 {
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
		if m.Name != "" && m.Name != m.Role && e.whole[i] == nil && role != "tool" && (e.to != OpenAI || !isSpeaker(m.Name)) && len(m.Parts) > 0 {
			e.loseWhole(i, "no place for the name %q", m.Name)
		}
	}
}

func isSystem(role string) bool { return role == "system" || role == "developer" }

// roleOf returns the role in the dialect. Unknown roles become user.
func (e *encoder) roleOf(role string) string {
	known := roles[strings.ToLower(role)]
	switch {
	case known == "":
		return "user"
	case known == "developer" && e.to != OpenAI && e.to != Responses:
		return "system"
	}
	return known
}

// leadingSystem moves a system message at the start of the history to the system prompt.
func (e *encoder) leadingSystem(i int) {
	var texts []string
	for k := range e.messages[i].Parts {
		switch p := &e.messages[i].Parts[k]; {
		case p.Kind == TextKind && !isBlank(p.Text):
			texts = append(texts, strings.ToValidUTF8(p.Text, "\ufffd"))
		case p.Kind != TextKind:
			e.losses = append(e.losses, Loss{Message: i, Part: k, Reason: "a system prompt has only texts"})
		}
	}
	if len(texts) > 0 {
		e.system = append(e.system, strings.Join(texts, "\n\n"))
	}
}

// saidIn are the members with content. A message is not used as given if the dialect would leave out one of these.
var saidIn = setOf("content", "parts", "refusal", "reasoning_content", "reasoning", "tool_calls", "function_call", "audio", "tool_call_id", "role", "summary", "output", "input", "arguments")

// asGiven returns a message as given, nil if the dialect does not accept it.
func (e *encoder) asGiven(i int) json.RawMessage {
	m := &e.messages[i]
	if m.Given == nil || len(m.Parts) == 0 {
		return nil
	}
	s := map[Dialect]*shape{OpenAI: chatMessage, Responses: responsesItem, Anthropic: anthropicMessage, UI: uiMessage}[e.to]
	given := m.Given
	if e.to == UI {
		given = e.identified(i)
	}
	var left []string
	out, ok := s.take(given, &left)
	if !ok || slices.ContainsFunc(left, func(key string) bool { return saidIn[key] }) {
		return nil
	}
	e.leftOut(i, -1, left)
	return out
}

// ofAnswers are the members of an API answer that are not part of the message.
var ofAnswers = setOf("type", "id", "model", "stop_reason", "stop_sequence", "usage")

// leftOut reports omitted members, except those of ofAnswers.
func (e *encoder) leftOut(message, part int, keys []string) {
	keys = slices.DeleteFunc(keys, func(key string) bool { return ofAnswers[key] })
	if len(keys) > 0 {
		slices.Sort(keys)
		e.loss(message, part, "no place for %s", []string{strings.Join(slices.Compact(keys), ", ")})
	}
}

// given returns the JSON of a unit as given, if the dialect accepts it.
func (e *encoder) given(u *unit, s *shape) (json.RawMessage, bool) {
	if u.p.Given == nil || s == nil {
		return nil, false
	}
	var left []string
	out, ok := s.take(u.p.Given, &left)
	if !ok || slices.ContainsFunc(left, func(key string) bool { return saidIn[key] }) {
		return nil, false
	}
	if e.whole[u.message] == nil {
		e.leftOut(u.message, u.part, left)
	}
	return out, true
}

// intact returns the message of units as given, if the units are all of its parts and unchanged.
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

// identified returns a message as given, with its id.
func (e *encoder) identified(i int) json.RawMessage {
	given, id := e.messages[i].Given, e.idOf(i)
	if has := rawjson.Last(given, "id"); rawjson.IsString(has) && rawjson.Str(has) == e.messages[i].ID {
		return given
	}
	return rawjson.Set(given, []byte(`"id"`), quote(id))
}

// turn is a sequence of units from one side. For results of the previous turn's calls, its role is "tool".
type turn struct {
	role  string
	units []*unit
	calls bool
}

// idOf returns the id of a message, or a generated one.
func (e *encoder) idOf(i int) string {
	if id := e.messages[i].ID; id != "" {
		return id
	}
	return "message-" + strconv.Itoa(i+1)
}
