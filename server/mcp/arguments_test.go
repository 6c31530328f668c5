//test:race

package mcp

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
)

// TestWrongArguments calls each tool with arguments that it cannot have: each error names the argument, and none is the text
// of the validator.
func TestWrongArguments(t *testing.T) {
	b := newBench(t)
	b.thread("trip", "", "", lineage.User("a"))
	c := b.connect(Client{Scope: Everything, Writes: WriteTools()}, nil)
	c.fails("append", map[string]any{"text": "x"}, "role is missing (who says it: user, assistant, system or tool)")
	c.fails("append", nil, "role is missing (who says it: user, assistant, system or tool); text is missing (what it says)")
	listed, err := c.ListTools(t.Context(), nil)
	require.NoError(t, err)
	require.Len(t, listed.Tools, 11)
	for _, tool := range listed.Tools {
		var schema struct {
			Properties map[string]map[string]any
			Required   []string
		}
		text, err := json.Marshal(tool.InputSchema)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, &schema))
		given := make(map[string]any)
		for _, name := range schema.Required {
			given[name] = "x"
		}
		with := func(name string, value any) map[string]any {
			all := maps.Clone(given)
			all[name] = value
			return all
		}
		fails := func(args map[string]any, text string) {
			t.Helper()
			c.fails(tool.Name, args, text)
			require.NotContains(t, c.call(tool.Name, args).Text, "validating")
		}
		for _, name := range schema.Required {
			without := maps.Clone(given)
			delete(without, name)
			fails(without, name+" is missing ("+schema.Properties[name]["description"].(string)+")")
		}
		fails(with("invented", 1), `"invented" is not one of them: `)
		for name := range schema.Properties {
			fails(with(name, map[string]any{"a": 1}), name+" must be ")
			if _, nullable := schema.Properties[name]["type"].([]any); !nullable {
				fails(with(name, nil), name+" must be ")
			}
		}
	}
}
