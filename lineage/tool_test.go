package lineage_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/message"
)

// Calls and results, whatever is in them, come out as the API of each provider has them.
func TestToolCalls(t *testing.T) {
	s := newStore(t)
	_, c := newThread(t, s)
	odd := "\"quotes\" \u2028 <b> \x00 \\"
	_, err := c.Extend(bg,
		lineage.User("go"),
		lineage.Calls("Two at once.", lineage.ToolCall{ID: "a", Tool: "read"}, lineage.ToolCall{ID: "b", Tool: "run", Input: []byte(`not JSON`)}),
		lineage.ToolResult("b", "run", odd), lineage.ToolResult("a", "read", ""),
		lineage.Calls("Done."),
	)
	require.NoError(t, err)
	for _, api := range []message.Dialect{message.OpenAI, message.Responses, message.Anthropic} {
		r, err := c.Request(bg, api, lineage.ResolveOptions{})
		require.NoError(t, err)
		require.Empty(t, r.Losses, api)
		var calls, results []string
		for _, raw := range r.Messages {
			for _, m := range message.Decode(raw, "application/json", "") {
				for i := range m.Parts {
					switch p := &m.Parts[i]; p.Kind {
					case message.CallKind:
						calls = append(calls, p.CallID+" "+p.Tool)
					case message.ResultKind:
						results = append(results, p.CallID+" "+p.OutputText())
					}
				}
			}
		}
		require.ElementsMatch(t, []string{"a read", "b run"}, calls, api)
		require.ElementsMatch(t, []string{"b " + odd, "a "}, results, api)
	}
}

// Items together stand among others, also several times and inside each other.
func TestTogetherAmongOthers(t *testing.T) {
	s := newStore(t)
	_, c := newThread(t, s)
	spans, err := c.Extend(bg,
		lineage.User("1"),
		lineage.Together(lineage.User("2a"), lineage.Together(lineage.User("2b"), lineage.User("2c")), lineage.User("2d")),
		lineage.User("3"),
		lineage.Together(lineage.User("4a"), lineage.Item{Kind: lineage.Document, Document: "plan", Body: []byte("4b")}),
	)
	require.NoError(t, err)
	require.Len(t, spans, 4)
	var got []string
	for e, err := range c.Entries(bg, lineage.Window{}) {
		require.NoError(t, err)
		got = append(got, string(rune('0'+e.Position))+" "+e.Excerpt())
	}
	require.Equal(t, []string{"1 1", "2 2a", "2 2b", "2 2c", "2 2d", "3 3", "4 4a", "4 4b"}, got)
}

// A body that an API does not get is not read, and one that is too large for it is an error.
func TestEncodeIsBounded(t *testing.T) {
	s := newStore(t)
	_, c := newThread(t, s)
	large := make([]byte, 100<<10)
	_, err := c.Extend(bg, lineage.User("see"), lineage.Item{Kind: lineage.Asset, Filename: "a.mp4", Type: "video/mp4", Body: large})
	require.NoError(t, err)
	r, err := s.Encode(bg, message.OpenAI, 1<<10, c.Entries(bg, lineage.Window{}))
	require.NoError(t, err)
	require.Contains(t, string(r.Messages[len(r.Messages)-1]), "a.mp4")
	_, err = c.Extend(bg, lineage.Item{Kind: lineage.Asset, Filename: "a.png", Type: "image/png", Body: large})
	require.NoError(t, err)
	_, err = s.Encode(bg, message.OpenAI, 1<<10, c.Entries(bg, lineage.Window{}))
	require.ErrorIs(t, err, lineage.ErrTooLarge)
}

// The result of a subagent is the whole message, with its calls.
func TestResultIsWhole(t *testing.T) {
	s := newStore(t)
	parent := newContext(t, s, "a task")
	child := fork(t, parent)
	text := `{"role":"assistant","content":[{"type":"text","text":"first"},{"type":"tool_use","id":"1","name":"ls","input":{"a":1}},{"type":"text","text":"second"}]}`
	_, err := child.Extend(bg, lineage.Item{Role: "assistant", Type: "application/json", Body: []byte(text), Metadata: []byte(`{"usage":{"output_tokens":5}}`)})
	require.NoError(t, err)
	_, err = child.Return(bg, lastEntry(t, child).Result("tool"))
	require.NoError(t, err)
	got := lastEntry(t, parent)
	body, err := s.Original(bg, got)
	require.NoError(t, err)
	require.Equal(t, text, string(body))
	require.Equal(t, "tool", got.Role)
	require.Empty(t, got.Metadata, "what it cost was counted where it was made")
}
