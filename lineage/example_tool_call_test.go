package lineage_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
)

// A tool call and its result are one step of the history, so that no model gets one without the
// other.
func ExampleTogether_toolCall() {
	ctx := context.Background()
	store, done := exampleStore()
	defer done()
	c, err := store.NewContext(ctx, lineage.ContextOptions{})
	must(err)

	_, err = c.Extend(ctx, lineage.User("What is 6 times 7?"))
	must(err)
	call := lineage.Item{Role: "assistant", Type: content.TypeJSON, Body: []byte(
		`{"content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"multiply","arguments":"[6,7]"}}]}`)}
	result := lineage.ToolResult("multiply", "42")
	result.Metadata = []byte(`{"tool_call_id":"call_1"}`)
	_, err = c.Extend(ctx, lineage.Together(call, result)...)
	must(err)
	_, err = c.Extend(ctx, lineage.Assistant("It is 42."))
	must(err)

	for e, err := range c.Entries(ctx, lineage.Window{}) {
		must(err)
		switch {
		case e.Type == content.TypeJSON:
			var said struct {
				Calls []struct {
					ID       string `json:"id"`
					Function struct{ Name, Arguments string }
				} `json:"tool_calls"`
			}
			must(json.Unmarshal(e.Body, &said))
			for _, call := range said.Calls {
				fmt.Printf("%d %s calls %s%s as %s\n", e.Position, e.Role, call.Function.Name, call.Function.Arguments, call.ID)
			}
		case e.Role == "tool":
			var of struct {
				ID string `json:"tool_call_id"`
			}
			must(json.Unmarshal(e.Metadata, &of))
			fmt.Printf("%d %s answers %s: %s\n", e.Position, e.Name, of.ID, e.Text())
		default:
			fmt.Printf("%d %s: %s\n", e.Position, e.Role, e.Text())
		}
	}
	// Output:
	// 1 user: What is 6 times 7?
	// 2 assistant calls multiply[6,7] as call_1
	// 2 multiply answers call_1: 42
	// 3 assistant: It is 42.
}
