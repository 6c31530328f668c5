package export

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/form"
	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/message"
)

// shareGPT writes a list with a conversation per history.
func (x *exporter) shareGPT(ctx context.Context) error {
	x.put("[")
	separator := "\n"
	err := x.each(ctx, func(conv *conversation) error {
		return x.histories(ctx, conv, func(history history) error {
			x.put(separator)
			separator = ",\n"
			if x.o.AsGiven {
				return x.givenTurns(ctx, history)
			}
			request, err := x.request(ctx, conv, history, ShareGPT)
			if err != nil {
				return err
			}
			var turns []string
			for _, item := range request.Messages {
				for _, m := range message.Decode(item, content.TypeJSON, "") {
					turns = append(turns, x.turnsOf(conv, &m)...)
				}
			}
			x.put(`{"conversations":[`, strings.Join(turns, ","), "]}")
			return x.failed()
		})
	})
	x.put("\n]\n")
	return err
}

// turnsOf returns the turns for a message of chat completions: one for its text, and one for its calls.
func (x *exporter) turnsOf(conv *conversation, m *message.Message) []string {
	var turns, calls []string
	text := message.Message{Role: m.Role}
	for i := range m.Parts {
		p := &m.Parts[i]
		switch p.Kind {
		case message.CallKind:
			arguments := []byte(p.Input)
			if arguments == nil {
				arguments = rawjson.Quote(p.Text)
			}
			calls = append(calls, `{"name":`+string(rawjson.Quote(p.Tool))+`,"arguments":`+string(arguments)+"}")
			continue
		case message.FileKind:
			x.o.Lost(Loss{Thread: conv.info.ID, Loss: lineage.Loss{Reason: "no place for " + p.Label() + ": written as text"}})
		}
		text.Parts = append(text.Parts, *p)
	}
	if len(text.Parts) > 0 {
		turns = append(turns, shareGPTTurn(shareGPTFrom(m.Role), rawjson.Quote(text.String()), m.Name))
	}
	switch len(calls) {
	case 0:
	case 1:
		turns = append(turns, shareGPTTurn("function_call", rawjson.Quote(calls[0]), m.Name))
	default:
		turns = append(turns, shareGPTTurn("function_call", rawjson.Quote("["+strings.Join(calls, ",")+"]"), m.Name))
	}
	return turns
}

func shareGPTTurn(from string, value []byte, name string) string {
	turn := `{"from":` + string(rawjson.Quote(from)) + `,"value":` + string(value)
	if name != "" {
		turn += `,"name":` + string(rawjson.Quote(name))
	}
	return turn + "}"
}

// givenTurns writes a history turn by turn.
func (x *exporter) givenTurns(ctx context.Context, history history) error {
	x.put("{")
	begun, first := false, true
	begin := func() {
		if !begun {
			x.put(`"conversations":[`)
		}
		begun = true
	}
	for e, err := range history {
		if err != nil {
			return err
		}
		if !begun && e.Role == "system" && string(member(e.Metadata, "field")) == `"system"` && !e.Erased {
			prompt, err := x.mustBody(ctx, e)
			if err != nil {
				return err
			}
			x.put(`"system":`, string(rawjson.Quote(string(prompt))), ",")
			begin()
			continue
		}
		begin()
		turn, err := x.givenTurn(ctx, e)
		if err != nil {
			return err
		}
		if !first {
			x.put(",")
		}
		first = false
		x.put(turn)
		if err := x.failed(); err != nil {
			return err
		}
	}
	begin()
	x.put("]}")
	return nil
}

// givenTurn returns the turn for an entry. A turn of this format is returned unchanged. A message with tool calls
// becomes a turn of a special kind, with the message as its value.
func (x *exporter) givenTurn(ctx context.Context, e *lineage.Entry) (string, error) {
	body, err := x.mustBody(ctx, e)
	if err != nil {
		return "", err
	}
	if e.Type == content.TypeJSON && rawjson.IsString(member(body, "from")) && member(body, "value") != nil {
		return string(body), nil
	}
	from, value := shareGPTFrom(e.Role), string(body)
	var quoted []byte
	switch {
	case e.Erased:
		value = form.Erased
	case e.Kind == lineage.Asset:
		from, value = "human", "["+e.FileLabel()+"]"
	case e.Kind == lineage.Document:
		from = "human"
	case e.Type == content.TypeJSON && e.Role == "assistant" && isCall(body, e.Messages(body)):
		from = "function_call"
	case e.Type == content.TypeJSON && isQuoted(bytes.TrimSpace(body)):
		quoted = bytes.TrimSpace(body)
	case e.Type == content.TypeJSON:
		value = plain(e.Messages(body))
	}
	if quoted == nil {
		quoted = rawjson.Quote(value)
	}
	name := ""
	if e.Kind == lineage.Message && e.Name != e.Role {
		name = e.Name
	}
	return shareGPTTurn(from, quoted, name), nil
}

func shareGPTFrom(role string) string {
	switch role {
	case "user":
		return "human"
	case "assistant":
		return "gpt"
	case "tool":
		return "observation"
	case "developer":
		return "system"
	}
	return role
}

// isCall reports whether a body is a message with tool calls in the form of chat endpoints, or a single call.
func isCall(body []byte, messages []message.Message) bool {
	if member(body, "tool_calls") == nil && member(body, "function_call") == nil && (member(body, "name") == nil || member(body, "arguments") == nil) {
		return false
	}
	return slices.ContainsFunc(messages[0].Parts, func(p message.Part) bool { return p.Kind == message.CallKind })
}

// plain returns the text of messages, without reasoning.
func plain(messages []message.Message) string {
	var texts []string
	for _, m := range messages {
		m.Parts = slices.DeleteFunc(m.Parts, func(p message.Part) bool { return p.Kind == message.ReasoningKind })
		texts = append(texts, m.String())
	}
	return strings.Join(texts, "\n\n")
}
