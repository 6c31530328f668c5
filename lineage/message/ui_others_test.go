package message_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/message"
)

// A text of Anthropic's API has the members that a text of a UI message needs, and others that validators of UI messages
// refuse: it is written without them.
func TestTextsOfAnthropicAsUI(t *testing.T) {
	for _, more := range []string{`,"citations":null`, `,"citations":[{"type":"page_location"}]`, `,"cache_control":{"type":"ephemeral"}`, ``} {
		body := []byte(`{"role":"assistant","content":[{"type":"text","text":"hi"` + more + `},{"type":"tool_use","id":"t","name":"f","input":{}}]}`)
		encoded, err := message.Encode(message.UI, message.Decode(body, "application/json", "assistant"))
		require.NoError(t, err)
		written := encoded.Items[0]
		var got struct{ Parts []map[string]any }
		require.NoError(t, json.Unmarshal(written, &got), "%s", written)
		require.Equal(t, map[string]any{"type": "text", "text": "hi"}, got.Parts[0], "%s", written)
	}
}
