package export

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/form"
	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/message"
)

// givenLine writes a history as a line, message by message.
func (x *exporter) givenLine(ctx context.Context, entries history, tools json.RawMessage) error {
	x.put(`{"messages":[`)
	first := true
	for e, err := range entries {
		if err != nil {
			return err
		}
		m, err := x.given(ctx, e)
		if err != nil {
			return err
		}
		if !first {
			x.put(",")
		}
		first = false
		x.put(onOneLine(m))
		if err := x.failed(); err != nil {
			return err
		}
	}
	x.put("]")
	if rawjson.IsArray(tools) {
		x.put(`,"tools":`, compact(tools))
	}
	x.put("}\n")
	return nil
}

// given returns an entry as a message. A JSON object stays as it is, but gets the role and name of its entry if it
// has none. Any other value becomes the content of a message.
func (x *exporter) given(ctx context.Context, e *lineage.Entry) (json.RawMessage, error) {
	body, err := x.mustBody(ctx, e)
	if err != nil {
		return nil, err
	}
	role := rawjson.Quote(e.Role)
	wrapped := func(content []byte) json.RawMessage {
		return bytes.Join([][]byte{[]byte(`{"role":`), role, []byte(`,"content":`), content, []byte("}")}, nil)
	}
	var m json.RawMessage
	switch value := bytes.TrimSpace(body); {
	case e.Erased:
		m = wrapped(rawjson.Quote(form.Erased))
	case e.Kind != lineage.Message:
		out, err := message.Encode(message.OpenAI, e.Messages(body))
		if err != nil {
			return nil, err
		}
		return out.Items[0], nil
	case e.Type != content.TypeJSON || rawjson.Check(value) != nil:
		m = wrapped(rawjson.Quote(string(body)))
	case !rawjson.IsObject(value):
		m = wrapped(value)
	case rawjson.Str(rawjson.Last(value, "role")) == "" && message.ItemRole(rawjson.Str(rawjson.Last(value, "type"))) == "":
		m = rawjson.Set(value, []byte(`"role"`), role)
	default:
		m = value
	}
	if e.Kind == lineage.Message && e.Name != "" && e.Name != e.Role && rawjson.Last(m, "name") == nil {
		m = rawjson.Set(m, []byte(`"name"`), rawjson.Quote(e.Name))
	}
	return m, nil
}

// onOneLine returns JSON on one line. JSON without line breaks is returned unchanged.
func onOneLine(raw json.RawMessage) string {
	if bytes.ContainsAny(raw, "\r\n") {
		return compact(raw)
	}
	return string(raw)
}
