package export

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/message"
)

// shareGPT writes a list with a conversation per history.
func (x *exporter) shareGPT(ctx context.Context) error {
	x.put("[")
	separator := "\n"
	for conv, err := range x.conversations(ctx) {
		if err != nil {
			return err
		}
		err := x.histories(ctx, conv, func(history history) error {
			x.put(separator, "{")
			separator = ",\n"
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
				turn, err := x.shareGPTTurn(ctx, e)
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
		})
		if err != nil {
			return err
		}
	}
	x.put("\n]\n")
	return nil
}

// shareGPTTurn writes an entry. A turn of this format is written unchanged. A message with tool
// calls becomes a turn of a special kind, with the calls as its value.
func (x *exporter) shareGPTTurn(ctx context.Context, e *lineage.Entry) (string, error) {
	body, err := x.mustBody(ctx, e)
	if err != nil {
		return "", err
	}
	from, value := shareGPTFrom(e.Role), string(body)
	if e.Type == content.TypeJSON && rawjson.IsString(member(body, "from")) && member(body, "value") != nil {
		return string(body), nil
	}
	quoted := ""
	switch {
	case e.Erased:
		value = erased
	case e.Kind == lineage.Asset:
		from, value = "human", "["+assetLabel(e)+"]"
	case e.Kind == lineage.Document:
		from = "human"
	case e.Type == content.TypeJSON && e.Role == "assistant" && isCall(body, said(e, body)):
		from = "function_call"
	case e.Type == content.TypeJSON && isQuoted(bytes.TrimSpace(body)):
		quoted = string(bytes.TrimSpace(body))
	case e.Type == content.TypeJSON:
		value = plain(said(e, body))
	}
	if quoted == "" {
		quoted = string(rawjson.Quote(value))
	}
	turn := `{"from":` + string(rawjson.Quote(from)) + `,"value":` + quoted
	if e.Kind == lineage.Message && e.Name != "" && e.Name != e.Role {
		turn += `,"name":` + string(rawjson.Quote(e.Name))
	}
	return turn + "}", nil
}

func shareGPTFrom(role string) string {
	switch role {
	case "user":
		return "human"
	case "assistant":
		return "gpt"
	case "tool":
		return "observation"
	}
	return role
}

// isCall reports whether a body is a message with tool calls in the shape of chat endpoints, or a
// single call.
func isCall(body []byte, said []message.Message) bool {
	if member(body, "tool_calls") == nil && member(body, "function_call") == nil && (member(body, "name") == nil || member(body, "arguments") == nil) {
		return false
	}
	return slices.ContainsFunc(said[0].Parts, func(p message.Part) bool { return p.Kind == message.CallKind })
}

// plain returns the text of messages, without reasoning.
func plain(said []message.Message) string {
	var texts []string
	for _, m := range said {
		m.Parts = slices.DeleteFunc(m.Parts, func(p message.Part) bool { return p.Kind == message.ReasoningKind })
		texts = append(texts, m.String())
	}
	return strings.Join(texts, "\n\n")
}
