package export

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
)

// shareGPT writes a list with a conversation for each history.
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
					x.put(`"system":`, quote(string(prompt)), ",")
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

// shareGPTTurn writes an entry. A message that calls tools is a turn of its own
// kind, with the calls as its value.
func (x *exporter) shareGPTTurn(ctx context.Context, e *lineage.Entry) (string, error) {
	body, err := x.mustBody(ctx, e)
	if err != nil {
		return "", err
	}
	from, value := shareGPTFrom(e.Role), string(body)
	if was := member(e.Metadata, "from"); isQuoted(was) {
		_ = json.Unmarshal(was, &from) // as the archive named the speaker
	}
	quoted := ""
	switch {
	case e.Erased:
		value = erased
	case e.Kind == lineage.Asset:
		from, value = "human", "["+assetLabel(e)+"]"
	case e.Kind == lineage.Document:
		from = "human"
	case e.Type == content.TypeJSON && e.Role == "assistant" && isCall(body):
		from = "function_call"
	case e.Type == content.TypeJSON && isQuoted(bytes.TrimSpace(body)):
		quoted = string(bytes.TrimSpace(body))
	case e.Type == content.TypeJSON:
		if some, ok := structured(body, 0); ok {
			value = plain(some)
		}
	}
	if quoted == "" {
		quoted = quote(value)
	}
	turn := `{"from":` + quote(from) + `,"value":` + quoted
	if e.Kind == lineage.Message && e.Name != "" && e.Name != e.Role {
		turn += `,"name":` + quote(e.Name)
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

// isCall reports whether a body is a call of tools in the shape of chat
// endpoints, or of a single one.
func isCall(body []byte) bool {
	if fields := openAINative(body); fields != nil {
		for i := 0; i < len(fields); i += 2 {
			if fields[i] == "tool_calls" || fields[i] == "function_call" {
				return true
			}
		}
		return false
	}
	body = bytes.TrimSpace(body)
	return member(body, "name") != nil && member(body, "arguments") != nil
}

// plain writes a message as text alone.
func plain(some []piece) string {
	var said []string
	for _, p := range some {
		switch p.kind {
		case callPiece:
			said = append(said, "["+"call of "+p.name+"] "+p.text)
		case mediaPiece:
			said = append(said, "["+mediaLabel(p)+"]")
		case reasoningPiece: // not part of what was said
		default:
			said = append(said, p.text)
		}
	}
	return strings.Join(said, "\n\n")
}
