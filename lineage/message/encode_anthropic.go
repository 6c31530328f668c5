package message

import (
	"encoding/json"
	"strings"
	"unicode"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// begun is a user message before a conversation that begins with the assistant.
const begun = "(The assistant begins.)"

// anthropic writes turns as messages of the Messages API, with alternating roles.
func (e *encoder) anthropic(turns []*turn) {
	messages := e.alternating(turns)
	if len(messages) == 0 {
		return
	}
	e.trimEnd(messages[len(messages)-1])
	if messages[0].role == "assistant" {
		e.items = append(e.items, new(object).text("role", "user").text("content", begun).bytes())
		e.loseWhole(messages[0].units[0].message, "the user begins a conversation: a text of the user stands before it")
	}
	for _, t := range messages {
		if given, ok := e.intact(t.units); ok {
			e.items = append(e.items, given)
			continue
		}
		var blocks []json.RawMessage
		for _, u := range t.units {
			blocks = append(blocks, e.block(u))
		}
		o := new(object).text("role", t.role)
		if len(t.units) == 1 && t.units[0].isText {
			o.text("content", t.units[0].p.Text)
		} else {
			o.raw("content", list(blocks))
		}
		e.items = append(e.items, o.bytes())
	}
}

// alternating joins the turns of each side. What is left of a turn of the assistant ends with something other than reasoning.
func (e *encoder) alternating(turns []*turn) (messages []*turn) {
	add := func(t *turn) {
		if t.role == "assistant" {
			e.trimReasoning(t)
		}
		switch n := len(messages); {
		case len(t.units) == 0:
		case n > 0 && messages[n-1].role == t.role:
			messages[n-1].units = append(messages[n-1].units, t.units...)
		default:
			messages = append(messages, t)
		}
	}
	var run *turn
	for _, t := range turns {
		role := t.role
		if role == "tool" {
			role = "user"
		}
		if run != nil && run.role != role {
			add(run)
			run = nil
		}
		if run == nil {
			run = &turn{role: role}
		}
		run.units = append(run.units, t.units...)
	}
	if run != nil {
		add(run)
	}
	return messages
}

// trimReasoning removes reasoning from the end of a turn.
func (e *encoder) trimReasoning(t *turn) {
	for n := len(t.units); n > 0 && t.units[n-1].p.Kind == ReasoningKind; n = len(t.units) {
		e.lose(t.units[n-1], "reasoning that nothing follows: left out")
		t.units = t.units[:n-1]
	}
}

// trimEnd removes trailing space from an assistant's text at the end of the history.
func (e *encoder) trimEnd(t *turn) {
	u := t.units[len(t.units)-1]
	if t.role != "assistant" || u.p.Kind != TextKind {
		return
	}
	if text := strings.TrimRightFunc(u.p.Text, unicode.IsSpace); text != u.p.Text {
		e.lose(u, "no space at the end of a last text of the assistant: left out")
		e.note(u, u.role, text)
	}
}

func (e *encoder) block(u *unit) json.RawMessage {
	switch {
	case u.p.Kind == CallKind && !u.p.Hosted:
		if given, ok := e.given(u, anthropicCall); ok && !u.changed {
			return given
		}
		if u.p.Input != nil && !rawjson.IsObject(u.p.Input) {
			e.lose(u, "arguments that are no object: they are under \"input\"")
		}
		return new(object).text("type", "tool_use").text("id", u.id).text("name", u.tool).raw("input", u.p.inputObject()).bytes()
	case u.call != nil:
		if given, ok := e.given(u, anthropicResult); ok && !u.changed {
			return given
		}
		o := new(object).text("type", "tool_result").text("tool_use_id", u.id)
		if text, parts := e.outputs(u); len(parts) > 0 {
			o.raw("content", list(parts))
		} else if !isBlank(text) {
			o.text("content", text)
		}
		if u.p.Failed {
			o.raw("is_error", []byte("true"))
		}
		return o.bytes()
	}
	return u.raw
}
