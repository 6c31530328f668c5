package sdktest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/lineage/message"
	"github.com/lineage-store/lineage/lineage/message/messagetest"
)

func TestMain(m *testing.M) {
	campaign.Checks(300)
	os.Exit(m.Run())
}

// fits reads an item as a provider's type and writes it again.
func fits(d message.Dialect, item json.RawMessage) error {
	var into any
	switch d {
	case message.OpenAI:
		into = new(openai.ChatCompletionMessageParamUnion)
	case message.Responses:
		into, item = responsesType(item)
	case message.Anthropic:
		into = new(anthropic.MessageParam)
		item = blocksOf(item)
	}
	if err := json.Unmarshal(item, into); err != nil {
		return err
	}
	again, err := json.Marshal(into)
	if err != nil {
		return err
	}
	want, got := value(item), value(again)
	if !reflect.DeepEqual(want, got) {
		return fmt.Errorf("it comes back as %s", again)
	}
	return nil
}

// responsesType returns the type that the library has for an item, and the item as the type
// has it: with its type, which the API lets messages leave out. The union of all items reads
// every message as the simplest kind, without ids.
func responsesType(item json.RawMessage) (any, json.RawMessage) {
	var m map[string]any
	if json.Unmarshal(item, &m) != nil {
		return new(responses.ResponseInputItemUnionParam), item
	}
	if _, ok := m["type"]; !ok {
		item = bytes.Replace(item, []byte("{"), []byte(`{"type":"message",`), 1)
	}
	if _, said := m["content"].([]any); said && m["role"] == "assistant" && m["type"] == "message" {
		return new(responses.ResponseOutputMessageParam), item
	}
	return new(responses.ResponseInputItemUnionParam), item
}

// blocksOf writes contents that are a text as a list of one block, which is the only way in
// which the library has them. The API takes both.
func blocksOf(item json.RawMessage) json.RawMessage {
	var m map[string]any
	if json.Unmarshal(item, &m) != nil {
		return item
	}
	text := func(m map[string]any) {
		if s, ok := m["content"].(string); ok {
			m["content"] = []any{map[string]any{"type": "text", "text": s}}
		}
	}
	text(m)
	blocks, _ := m["content"].([]any)
	for _, b := range blocks {
		if b, ok := b.(map[string]any); ok && b["type"] == "tool_result" {
			text(b)
		}
	}
	out, err := json.Marshal(m)
	if err != nil {
		return item
	}
	return out
}

// value is JSON as it compares: a member that is null is one that is not there.
func value(raw []byte) any {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return err.Error()
	}
	return withoutNulls(v)
}

func withoutNulls(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if e == nil {
				delete(v, k)
			} else {
				v[k] = withoutNulls(e)
			}
		}
	case []any:
		for i := range v {
			v[i] = withoutNulls(v[i])
		}
	}
	return v
}

var apis = []message.Dialect{message.OpenAI, message.Responses, message.Anthropic}

func check(t require.TestingT, to message.Dialect, items []json.RawMessage, from any) {
	require.NoError(t, messagetest.Check(to, items), "%s\nfrom %q", items, from)
	for _, item := range items {
		require.NoError(t, fits(to, item), "%s: %s\nfrom %q", to, item, from)
	}
}

// The checks refuse what the libraries do not know.
func TestTypesRefuse(t *testing.T) {
	for d, items := range map[message.Dialect][]string{
		message.OpenAI:    {`{"role":"user","content":"x","weight":1}`, `{"role":"tool","content":"x"}`},
		message.Responses: {`{"role":"user","content":"x","name":"ada"}`, `{"type":"new"}`, `{"type":"reasoning","summary":[]}`},
		message.Anthropic: {`{"role":"user","content":[{"type":"text","text":"x","annotations":[]}]}`, `{"role":"assistant","content":[{"type":"new"}]}`},
	} {
		for _, item := range items {
			require.Error(t, fits(d, json.RawMessage(item)), item)
		}
	}
}

func TestOwnDialectFits(t *testing.T) {
	for _, d := range apis {
		t.Run(string(d), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				for _, item := range messagetest.History(t, d) {
					require.NoError(t, fits(d, json.RawMessage(item)), item)
				}
			})
		})
	}
}

func TestEveryDialectFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.SampledFrom(message.Dialects()).Draw(t, "from")
		items := messagetest.History(t, from)
		var history []message.Message
		for _, item := range items {
			history = append(history, message.Decode([]byte(item), "application/json", "user")...)
		}
		for _, to := range apis {
			out, err := message.Encode(to, history)
			require.NoError(t, err)
			check(t, to, out.Items, items)
		}
	})
}

func TestAnyHistoryFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bodies := messagetest.Wild(t)
		for _, to := range apis {
			out, err := message.Encode(to, messagetest.Decoded(bodies))
			require.NoError(t, err)
			check(t, to, out.Items, bodies)
		}
	})
}
