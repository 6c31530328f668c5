package message

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// ui writes the history as UI messages. A call includes its result, wherever that was.
func (e *encoder) ui() {
	for units := range byMessage(e.units) {
		e.uiMessage(units)
	}
}

func (e *encoder) uiMessage(units []*unit) {
	i := units[0].message
	intact := e.whole[i] != nil && len(units) == len(e.messages[i].Parts)
	for _, u := range units {
		intact = intact && !u.changed && !u.gone && (u.result == nil || u.result.message == i) && (u.call == nil || u.call.message == i)
	}
	if intact {
		e.items = append(e.items, e.whole[i])
		return
	}
	made := 0
	role, parts := "", []json.RawMessage(nil)
	flush := func() {
		if len(parts) == 0 {
			return
		}
		id := e.idOf(i)
		if made++; made > 1 {
			id += "-" + strconv.Itoa(made)
		}
		o := new(object).text("id", id).text("role", role).raw("parts", list(parts))
		if metadata := rawjson.Last(e.messages[i].Given, "metadata"); metadata != nil && made == 1 && e.messages[i].Given != nil {
			o.raw("metadata", metadata)
		}
		e.items = append(e.items, o.bytes())
		parts = nil
	}
	for _, u := range units {
		if u.gone || u.call != nil || u.p.Hosted && u.p.Kind == ResultKind {
			continue
		}
		raw := u.raw
		if u.p.Kind == CallKind {
			if raw = e.uiCall(u); raw == nil {
				continue
			}
		}
		if u.role != role {
			flush()
			role = u.role
		}
		parts = append(parts, raw)
	}
	flush()
}

// uiCall returns the part for a call with its result.
func (e *encoder) uiCall(u *unit) json.RawMessage {
	given, ok := e.given(u, uiTool.orElse(uiDynamic))
	if ok && !u.changed && (u.result == nil && rawjson.Last(given, "output") == nil && rawjson.Last(given, "errorText") == nil ||
		u.p.Hosted || u.result != nil && bytes.Equal(u.result.p.Given, u.p.Given)) {
		return given
	}
	if u.p.Hosted {
		e.lose(u, "no place for what the provider's own tool %q did: left out", u.p.Tool)
		return nil
	}
	input := u.p.Input
	if input == nil {
		input = json.RawMessage(quote(u.p.Text))
	}
	o := new(object)
	if u.p.Tool == "" {
		o.text("type", "dynamic-tool").text("toolName", "")
	} else {
		o.text("type", "tool-"+u.p.Tool)
	}
	o.text("toolCallId", u.id)
	switch r := u.result; {
	case r == nil:
		o.text("state", "input-available").raw("input", input)
	case r.p.Failed:
		o.text("state", "output-error").raw("input", input).text("errorText", r.p.OutputText())
	default:
		o.text("state", "output-available").raw("input", input).raw("output", e.uiOutput(r))
	}
	return o.bytes()
}

// uiOutput returns the result of a call as a value.
func (e *encoder) uiOutput(u *unit) json.RawMessage {
	if len(u.p.Output) == 1 {
		switch o := &u.p.Output[0]; o.Kind {
		case TextKind:
			return quote(o.Text)
		case DataKind:
			return o.Data
		}
	}
	text, parts := e.outputs(u)
	if len(parts) > 0 {
		return list(parts)
	}
	return quote(text)
}
