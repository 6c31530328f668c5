package mcp

import (
	"encoding/json"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/plain"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/server/access"
)

// FuzzArguments calls every tool with any arguments: the answer is bounded, has no character that controls a terminal, and
// nothing of another project.
func FuzzArguments(f *testing.F) {
	b := newBench(f)
	b.thread("ours", "/src/a", "ada", lineage.User("hello"), answered("ours", "msg_1"))
	b.thread("theirs", "/src/b", "ada", lineage.User("xylophone"))
	c := b.connect(Client{Scope: fixed(access.Scope{Projects: []string{"/src/a"}})}, nil)
	tools, err := c.ListTools(f.Context(), nil)
	require.NoError(f, err)
	for i, seed := range []string{
		`{"at":"main~1"}`, `{"thread":"Title of ours","from":1,"to":2}`, `{"a":"@{-1}","b":":1"}`, `{"content":":1"}`, `{"query":"\"a b\" OR c*"}`, `{"by":["day","model"]}`,
		`{"budget":-1}`, `{"offset":18446744073709551615,"at":":1"}`, `{"limit":-9223372036854775808}`, `{"from":9223372036854775807}`, `{"after":"x"}`, `null`, `[]`, `{"at":"\u0000\ud800"}`,
	} {
		f.Add(uint8(i), seed)
	}
	f.Fuzz(func(t *testing.T, which uint8, arguments string) {
		if !json.Valid([]byte(arguments)) {
			return
		}
		tool := tools.Tools[int(which)%len(tools.Tools)].Name
		result, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)})
		if err != nil {
			return // refused by the protocol
		}
		answer, err := json.Marshal(result)
		require.NoError(t, err)
		require.Less(t, len(answer), 8*maxBudget*bytesPerToken)
		for _, content := range result.Content {
			text := content.(*sdk.TextContent).Text
			require.Equal(t, plain.Text(text), text)
			require.NotContains(t, text, "Title of theirs")
		}
		require.NotContains(t, string(answer), "/src/b")
	})
}
