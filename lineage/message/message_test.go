package message_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

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

func encode(t require.TestingT, to message.Dialect, history []message.Message) *message.Encoded {
	out, err := message.Encode(to, history)
	require.NoError(t, err)
	return out
}

func decodeAll(items []string, role string) []message.Message {
	var history []message.Message
	for _, item := range items {
		history = append(history, message.Decode([]byte(item), "application/json", role)...)
	}
	return history
}

// Histories that an API accepts are written unchanged, without loss.
func TestOwnDialectIsUntouched(t *testing.T) {
	for _, d := range message.Dialects() {
		t.Run(string(d), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				items := messagetest.History(t, d)
				out := encode(t, d, decodeAll(items, "user"))
				if d == message.Text {
					require.Len(t, out.Items, len(items))
					for i := range items {
						require.JSONEq(t, items[i], string(out.Items[i]))
					}
					return
				}
				require.Empty(t, out.Losses)
				require.Equal(t, items, texts(out.Items))
				require.NoError(t, messagetest.Check(d, out.Items))
			})
		})
	}
}

func texts(items []json.RawMessage) []string {
	out := make([]string, len(items))
	for i := range items {
		out[i] = string(items[i])
	}
	return out
}

// Any stored history is converted to one that the API accepts.
func TestAnyHistoryIsAccepted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bodies := messagetest.Wild(t)
		history := messagetest.Decoded(bodies)
		for _, to := range message.Dialects() {
			out := encode(t, to, history)
			require.NoError(t, messagetest.Check(to, out.Items), "%s: %q\nfrom %q", to, out.Items, bodies)
			for _, l := range out.Losses {
				require.Less(t, l.Message, len(history))
				require.Less(t, l.Part, len(history[l.Message].Parts))
				require.NotEmpty(t, l.Reason)
			}
			// Converting the result again does not change it.
			again := encode(t, to, decodeAll(texts(out.Items), "user"))
			if to != message.Text {
				require.Equal(t, texts(out.Items), texts(again.Items))
				require.Empty(t, again.Losses, to)
			}
		}
	})
}

// told lists the texts, calls and results of a history.
func told(t require.TestingT, system []string, history []message.Message) []string {
	var out []string
	for _, s := range system {
		out = append(out, "text "+s)
	}
	for _, m := range history {
		for i := range m.Parts {
			switch p := &m.Parts[i]; {
			case p.Hosted:
			case p.Kind == message.TextKind:
				out = append(out, "text "+p.Text)
			case p.Kind == message.CallKind:
				out = append(out, "call "+p.CallID+" "+p.Tool+" "+input(t, p))
			case p.Kind == message.ResultKind:
				text, _, _ := strings.Cut(p.OutputText(), "\n\n[image/png") // a note where there is no place for images
				out = append(out, "result "+p.CallID+" "+text)
			}
		}
	}
	return out
}

// input is the input of a call, independent of formatting. A text that is not JSON is an object in
// dialects that require one.
func input(t require.TestingT, p *message.Part) string {
	v := any(map[string]any{"input": p.Text})
	if p.Input != nil {
		require.NoError(t, json.Unmarshal(p.Input, &v))
	}
	if text, ok := v.(string); ok {
		v = map[string]any{"input": text}
	}
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return string(b)
}

// Conversion neither loses nor invents content, and keeps the order.
func TestEveryDialectSaysTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dialects := []message.Dialect{message.OpenAI, message.Responses, message.Anthropic, message.UI}
		from := rapid.SampledFrom(dialects).Draw(t, "from")
		items := messagetest.History(t, from)
		history := decodeAll(items, "user")
		want := told(t, nil, history)
		for _, to := range dialects {
			out := encode(t, to, history)
			got := told(t, out.System, decodeAll(texts(out.Items), "user"))
			if from == message.UI || to == message.UI || from == message.Anthropic || to == message.Anthropic {
				slices.Sort(want) // these have results beside their calls, and texts in another order
				slices.Sort(got)
			}
			require.Equal(t, want, got, "%s: %q\nfrom %q", to, out.Items, items)
		}
	})
}
