package message

import (
	"cmp"
	"slices"
	"strconv"
)

// pair assigns results to calls. A result without an id belongs to the first open call of its tool,
// or else to the first open call.
func (e *encoder) pair() {
	byID, byTool := make(map[string][]*unit), make(map[string][]*unit)
	var waiting []*unit
	next := func(queue []*unit) (*unit, []*unit) {
		for len(queue) > 0 && queue[0].result != nil {
			queue = queue[1:]
		}
		if len(queue) == 0 {
			return nil, nil
		}
		return queue[0], queue
	}
	for _, u := range e.units {
		if u.p.Hosted {
			continue
		}
		switch u.p.Kind {
		case CallKind:
			byID[u.p.CallID] = append(byID[u.p.CallID], u)
			byTool[u.p.Tool] = append(byTool[u.p.Tool], u)
			waiting = append(waiting, u)
		case ResultKind:
			var call *unit
			switch {
			case u.p.CallID != "":
				call, byID[u.p.CallID] = next(byID[u.p.CallID])
			case u.p.Tool != "":
				call, byTool[u.p.Tool] = next(byTool[u.p.Tool])
			default:
				call, waiting = next(waiting)
			}
			if call != nil {
				u.call, call.result = call, u
			}
		}
	}
}

// note replaces a unit by a text that describes it, because the dialect cannot express it.
func (e *encoder) note(u *unit, role, text string) {
	if e.to == Anthropic && isBlank(text) {
		u.gone = true
		return
	}
	u.role, u.changed = role, true
	u.raw, u.isText = e.newText(text, role), true
	u.p = &Part{Kind: TextKind, Text: text}
}

// identify assigns each call a unique id and a tool name that the dialect accepts. A result gets the id of its call.
func (e *encoder) identify() {
	taken := make(map[string]bool)
	for _, u := range e.units {
		if u.p.Hosted && !u.gone {
			taken[u.p.CallID] = true
		}
	}
	var refused []*unit // calls that need another id
	for _, u := range e.units {
		if u.p.Kind != CallKind || u.gone || u.p.Hosted {
			continue
		}
		u.id = u.p.CallID
		if u.id == "" || taken[u.id] || !e.acceptsCallID(u.id) {
			refused = append(refused, u)
		}
		taken[u.id] = true
		e.nameTool(u)
	}
	e.numberCalls(refused, taken)
	for _, u := range e.units {
		if u.call == nil {
			continue
		}
		if u.id = u.call.id; u.id != u.p.CallID {
			u.changed = true
		}
	}
}

func (e *encoder) acceptsCallID(id string) bool {
	accepted := map[Dialect]*shape{OpenAI: chatCallID, Responses: callID, Anthropic: anthropicID, UI: notEmpty}[e.to]
	var left []string
	_, ok := accepted.take(quote(id), &left)
	return ok
}

// nameTool sets the name of the tool of a call.
func (e *encoder) nameTool(u *unit) {
	u.tool = u.p.Tool
	if e.to == UI { // accepts all names
		return
	}
	longest := maxToolName
	if e.to == Anthropic {
		longest = maxAnthropicTool
	}
	if u.tool = toolName(u.p.Tool, longest); u.tool != u.p.Tool {
		u.changed = true
		e.lose(u, "no tool %q: called %s", u.p.Tool, u.tool)
	}
}

// numberCalls gives calls ids that are not taken.
func (e *encoder) numberCalls(calls []*unit, taken map[string]bool) {
	n := 0
	for _, u := range calls {
		for n++; taken["call_"+strconv.Itoa(n)]; n++ {
		}
		u.id, u.changed = "call_"+strconv.Itoa(n), true
		if u.p.CallID != "" {
			e.lose(u, "no call id %q: it is %s", u.p.CallID, u.id)
		}
	}
}

// turns splits the history into turns. The results of a turn's calls follow it directly.
func (e *encoder) turns() []*turn {
	var turns []*turn
	var current *turn
	flush := func() {
		if current == nil {
			return
		}
		turns = append(turns, current)
		results := &turn{role: "tool"}
		for _, u := range current.units {
			if u.result != nil && !u.result.gone {
				results.units = append(results.units, u.result)
			}
		}
		if len(results.units) > 0 {
			slices.SortStableFunc(results.units, func(a, b *unit) int { return cmp.Or(a.message-b.message, a.part-b.part) })
			turns = append(turns, results)
		}
		current = nil
	}
	for _, u := range e.units {
		switch {
		case u.gone:
			continue
		case u.call != nil:
			if u.call.turn == current {
				flush()
			}
			continue
		}
		if current == nil || current.role != u.role || current.units[0].message != u.message && !current.calls {
			flush()
			current = &turn{role: u.role}
		}
		current.units = append(current.units, u)
		current.calls = current.calls || u.p.Kind == CallKind && !u.p.Hosted
		u.turn = current
	}
	flush()
	return turns
}

// closeCalls replaces calls without results by texts, except those that the caller may answer.
func (e *encoder) closeCalls(turns []*turn) {
	for i, t := range turns {
		if i == len(turns)-1 && !slices.ContainsFunc(t.units, func(u *unit) bool { return u.result != nil }) {
			return
		}
		for _, u := range t.units {
			if u.p.Kind == CallKind && u.result == nil && !u.p.Hosted {
				e.lose(u, "a call without a result: written as text")
				e.note(u, t.role, u.p.String())
			}
		}
	}
}

// express encodes units other than calls and results, and writes as text what the dialect cannot
// express.
func (e *encoder) express() {
	known, pairs := e.hostedCalls()
	for _, u := range e.units {
		switch {
		case u.p.Hosted && e.to == UI && known[u] || u.p.Kind == CallKind && !u.p.Hosted || u.call != nil:
		case u.p.Hosted:
			var ok bool
			if u.raw, ok = e.given(u, anthropicAssistantBlock); !ok || e.to != Anthropic || pairs[u] == nil {
				e.lose(u, "no place for what the provider's own tool %q did: left out", u.p.Tool)
				u.gone = true
			}
		case u.p.Kind == ResultKind:
			e.lose(u, "a result without a call: written as text of the user")
			e.note(u, "user", "[result of "+cmp.Or(u.p.Tool, "a tool")+"] "+u.p.OutputText())
		default:
			e.content(u)
		}
	}
	for u, other := range pairs {
		u.gone = u.gone || other.gone
	}
}

// hostedCalls returns the hosted calls and results with unique ids, and maps each call with a
// result to it and back.
func (e *encoder) hostedCalls() (known map[*unit]bool, pairs map[*unit]*unit) {
	known, pairs = make(map[*unit]bool), make(map[*unit]*unit)
	calls := make(map[string]*unit)
	for _, u := range e.units {
		if !u.p.Hosted || u.p.CallID == "" {
			continue
		}
		c := calls[u.p.CallID]
		switch {
		case u.p.Kind == CallKind && c == nil:
			calls[u.p.CallID], known[u] = u, true
		case u.p.Kind == ResultKind && c != nil && c.message == u.message && pairs[c] == nil:
			known[u], pairs[u], pairs[c] = true, c, u
		}
	}
	return known, pairs
}

// content encodes a text, reasoning, file or data.
func (e *encoder) content(u *unit) {
	p := u.p
	shape := e.shapeOf(u.role)
	if p.Kind == TextKind && e.to == Anthropic && isBlank(p.Text) {
		e.lose(u, "no empty texts: left out")
		u.gone = true
		return
	}
	if raw, ok := e.given(u, shape); ok && (p.Kind != DataKind || e.to != OpenAI) {
		u.raw = raw
		u.isText = false
		return
	}
	switch p.Kind {
	case TextKind:
		u.raw, u.isText = e.newText(p.Text, u.role), true
	case ReasoningKind:
		if e.to == UI {
			u.raw = new(object).text("type", "reasoning").text("text", p.Text).bytes()
			return
		}
		e.lose(u, "no place for reasoning that is not its own: left out")
		u.gone = true
	case FileKind:
		if u.raw = e.file(p, u.role); u.raw == nil {
			e.lose(u, "no place for %s there: written as text", p.Label())
			e.note(u, u.role, p.String())
		}
	case DataKind:
		if p.Name != "step-start" {
			e.lose(u, "no place for data: left out")
		}
		u.gone = true
	}
}

// shapeOf returns the shape of the parts of messages with a role.
func (e *encoder) shapeOf(role string) *shape {
	switch e.to {
	case UI:
		return uiPart
	case Anthropic:
		if role == "assistant" {
			return anthropicAssistantBlock
		}
		return anthropicUserBlock
	case OpenAI:
		switch {
		case role == "assistant":
			return chatAssistantPart
		case role == "user":
			return chatPart
		}
		return chatText
	case Responses:
		switch {
		case role == "assistant":
			return responsesOther
		case role == "user":
			return inputPart
		}
		return inputText
	}
	return nil
}
