package export

import (
	"context"
	"encoding/json"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage"
)

// lines writes one line per history.
func (x *exporter) lines(ctx context.Context, format Format) error {
	return x.each(ctx, func(conv *conversation) error {
		tools, err := x.field(ctx, conv, "tools")
		if err != nil {
			return err
		}
		if tools != nil && !x.o.AsGiven && (format != OpenAI || !isTools(tools)) {
			x.o.Lost(Loss{Thread: conv.info.ID, Loss: lineage.Loss{Reason: "the list of tools is in another format: left out"}})
			tools = nil
		}
		return x.histories(ctx, conv, func(history history) error {
			if x.o.AsGiven {
				return x.givenLine(ctx, history, tools)
			}
			request, err := x.request(ctx, conv, history, format)
			if err != nil {
				return err
			}
			x.put(onOneLine(withTools(request.Body(), tools)), "\n")
			return x.failed()
		})
	})
}

// isTools reports whether a value is a list of tools of chat completions.
func isTools(list json.RawMessage) bool {
	if !rawjson.IsArray(list) {
		return false
	}
	for tool := range rawjson.Elements(list) {
		kind := rawjson.Str(rawjson.Last(tool, "type"))
		if kind != "function" && kind != "custom" || rawjson.Str(rawjson.Last(rawjson.Last(tool, kind), "name")) == "" {
			return false
		}
	}
	return true
}

func withTools(line, tools json.RawMessage) json.RawMessage {
	if !rawjson.IsArray(tools) {
		return line
	}
	return rawjson.Set(line, []byte(`"tools"`), []byte(compact(tools)))
}

// maxFields limits how many entries of a log are searched for a field. Fields are at the start of a log.
const maxFields = 64

// field returns a field of a conversation that an import kept, nil if there is none.
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
