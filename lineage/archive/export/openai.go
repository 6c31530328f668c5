package export

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/message"
)

// openAI writes each history as a line.
func (x *exporter) openAI(ctx context.Context) error {
	for conv, err := range x.conversations(ctx) {
		if err != nil {
			return err
		}
		tools, err := x.field(ctx, conv, "tools")
		if err != nil {
			return err
		}
		err = x.histories(ctx, conv, func(history history) error {
			x.put(`{"messages":[`)
			first := true
			for e, err := range history {
				if err != nil {
					return err
				}
				messages, err := x.openAIMessages(ctx, e)
				if err != nil {
					return err
				}
				for _, m := range messages {
					if !first {
						x.put(",")
					}
					first = false
					x.put(m)
				}
				if err := x.failed(); err != nil {
					return err
				}
			}
			x.put("]")
			if len(tools) > 0 && tools[0] == '[' {
				x.put(`,"tools":`, compact(tools))
			}
			x.put("}\n")
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// maxFields limits how far a log is searched for a field; fields come first.
const maxFields = 64

// field returns a field of a conversation that an import has kept, nil if there is none.
func (x *exporter) field(ctx context.Context, conv *conversation, name string) (json.RawMessage, error) {
	if v := member(conv.info.Metadata, name); v != nil {
		return v, nil
	}
	for _, tip := range conv.beside {
		for e, err := range x.store.History(ctx, tip, lineage.Window{To: maxFields}) {
			if err != nil {
				return nil, err
			}
			if e.Role == "field" && e.Name == name && e.Type == content.TypeJSON && !e.Erased {
				body, ok, err := x.body(ctx, e)
				if err != nil || ok && json.Valid(body) {
					return body, err
				}
			}
		}
	}
	return nil, nil
}

// openAIMessages returns the messages for an entry: several if a tool result comes with other
// content, which this format separates.
func (x *exporter) openAIMessages(ctx context.Context, e *lineage.Entry) ([]string, error) {
	body, err := x.mustBody(ctx, e)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, m := range said(e, body) {
		for _, item := range message.ChatLog(m) {
			if len(out) == 0 {
				item = named(e, item)
			}
			out = append(out, onOneLine(item))
		}
	}
	return out, nil
}

// named returns a message with the name of its entry.
func named(e *lineage.Entry, item []byte) []byte {
	if e.Kind != lineage.Message || e.Name == "" || e.Name == e.Role || rawjson.Last(item, "name") != nil {
		return item
	}
	return rawjson.Set(item, []byte(`"name"`), rawjson.Quote(e.Name))
}

// onOneLine returns JSON in one line; unchanged if it has no line breaks.
func onOneLine(raw json.RawMessage) string {
	if bytes.ContainsAny(raw, "\r\n") {
		return compact(raw)
	}
	return string(raw)
}
