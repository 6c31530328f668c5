package message

import (
	"encoding/json"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// chat writes turns as messages of chat completions.
func (e *encoder) chat(turns []*turn) {
	for _, t := range turns {
		if t.role == "tool" {
			for _, u := range t.units {
				e.items = append(e.items, e.chatResult(u))
			}
			continue
		}
		if given, ok := e.intact(t.units); ok {
			e.items = append(e.items, given)
			continue
		}
		var parts, calls []json.RawMessage
		var texts []string
		for _, u := range t.units {
			switch {
			case u.p.Kind == CallKind:
				calls = append(calls, e.chatCall(u))
			default:
				parts = append(parts, u.raw)
				if u.isText {
					texts = append(texts, u.p.Text)
				}
			}
		}
		o := new(object).text("role", t.role)
		switch {
		case len(parts) == 0 && len(calls) > 0:
			o.raw("content", []byte("null"))
		case len(parts) == 0:
			o.text("content", "")
		case len(texts) == 1 && len(parts) == 1:
			o.text("content", texts[0])
		default:
			o.raw("content", list(parts))
		}
		if len(calls) > 0 {
			o.raw("tool_calls", list(calls))
		}
		if m := &e.messages[t.units[0].message]; m.Name != "" && m.Name != m.Role && isSpeaker(m.Name) && !isTool(m.Role) {
			o.text("name", m.Name)
		}
		e.items = append(e.items, o.bytes())
	}
}

func (e *encoder) chatCall(u *unit) json.RawMessage {
	if given, ok := e.given(u, chatCall); ok && !u.changed {
		return given
	}
	f := new(object).text("name", u.tool).raw("arguments", u.p.arguments())
	return new(object).text("id", u.id).text("type", "function").raw("function", f.bytes()).bytes()
}

func (e *encoder) chatResult(u *unit) json.RawMessage {
	if given, ok := e.intact([]*unit{u}); ok {
		return given
	}
	if u.p.Failed {
		e.lose(u, "no place for that the call failed")
	}
	text, _ := e.outputs(u)
	return new(object).text("role", "tool").text("content", text).text("tool_call_id", u.id).bytes()
}

// responses writes turns as items of the Responses API.
func (e *encoder) responses(turns []*turn) {
	w := responsesWriter{encoder: e, ids: make(map[string]bool)}
	for _, t := range turns {
		switch t.role {
		case "tool":
			for _, u := range t.units {
				w.result(u)
			}
		case "assistant":
			for units := range byMessage(t.units) {
				w.assistant(units)
			}
		default:
			w.says(t)
		}
	}
	w.dropReasoning()
}

// responsesWriter writes the items of the Responses API.
type responsesWriter struct {
	*encoder
	ids   map[string]bool // of items
	units []*unit         // the first unit of each item
}

func (w *responsesWriter) put(u *unit, item json.RawMessage) {
	w.items, w.units = append(w.items, item), append(w.units, u)
}

// fresh reports whether the id of an item is unused.
func (w *responsesWriter) fresh(item json.RawMessage) bool {
	id := rawjson.Str(rawjson.Last(item, "id"))
	if id != "" && w.ids[id] {
		return false
	}
	w.ids[id] = id != ""
	return true
}

func (w *responsesWriter) says(t *turn) {
	if given, ok := w.intact(t.units); ok {
		w.put(t.units[0], given)
		return
	}
	var parts []json.RawMessage
	for _, u := range t.units {
		parts = append(parts, u.raw)
	}
	o := new(object).text("type", "message").text("role", t.role)
	if len(parts) == 1 && t.units[0].isText {
		o.text("content", t.units[0].p.Text)
	} else {
		o.raw("content", list(parts))
	}
	w.put(t.units[0], o.bytes())
}

func (w *responsesWriter) assistant(units []*unit) {
	if given, ok := w.intact(units); ok && w.fresh(given) {
		if units[0].p.Kind == CallKind {
			units[0].raw = given
		}
		w.put(units[0], given)
		return
	}
	for _, u := range units {
		switch {
		case u.p.Kind == CallKind:
			w.call(u)
		case u.p.Kind == TextKind:
			w.put(u, new(object).text("type", "message").text("role", "assistant").text("content", u.p.Text).bytes())
		case w.fresh(u.raw):
			w.put(u, u.raw)
		default:
			w.lose(u, "an item of an id that another has: left out")
		}
	}
}

func (w *responsesWriter) call(u *unit) {
	if given, ok := w.given(u, responsesOther); ok && !u.changed {
		if !w.fresh(given) {
			given = rawjson.Remove(given, "id")
		}
		u.raw = given
	} else {
		u.raw = new(object).text("type", "function_call").text("call_id", u.id).text("name", u.tool).raw("arguments", u.p.arguments()).bytes()
	}
	w.put(u, u.raw)
}

func (w *responsesWriter) result(u *unit) {
	kind := rawjson.Str(rawjson.Last(u.call.raw, "type")) + "_output"
	if given, ok := w.intact([]*unit{u}); ok && rawjson.Str(rawjson.Last(given, "type")) == kind && w.fresh(given) {
		w.put(u, given)
		return
	}
	if u.p.Failed {
		w.lose(u, "no place for that the call failed")
	}
	text, parts := w.outputs(u)
	o := new(object).text("type", kind).text("call_id", u.id)
	if len(parts) > 0 {
		o.raw("output", list(parts))
	} else {
		o.text("output", text)
	}
	w.put(u, o.bytes())
}

// dropReasoning omits reasoning that is not followed by another item of the model.
func (w *responsesWriter) dropReasoning() {
	follows := false
	items := w.items[:0:0]
	for i := len(w.items) - 1; i >= 0; i-- {
		u := w.units[i]
		if u.p.Kind == ReasoningKind && !follows {
			w.lose(u, "reasoning that nothing follows: left out")
			continue
		}
		follows = u.role == "assistant"
		items = append(items, w.items[i])
	}
	for i, k := 0, len(items)-1; i < k; i, k = i+1, k-1 {
		items[i], items[k] = items[k], items[i]
	}
	w.items = items
}
