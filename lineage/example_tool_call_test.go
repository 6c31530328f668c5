package lineage_test

import (
	"context"
	"fmt"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/message"
)

// A tool call and its result are messages as an API has them, and one step of the history, so that no
// model gets one without the other. Any other API gets them as well.
func ExampleTogether_toolCall() {
	ctx := context.Background()
	store, done := exampleStore()
	defer done()
	c, err := store.NewContext(ctx, lineage.ContextOptions{})
	must(err)

	_, err = c.Extend(ctx, lineage.User("What is 6 times 7?"))
	must(err)
	call := lineage.Item{Role: "assistant", Type: content.TypeJSON, Body: []byte(
		`{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"multiply","arguments":"{\"a\":6,\"b\":7}"}}]}`)}
	result := lineage.Item{Role: "tool", Type: content.TypeJSON, Body: []byte(`{"role":"tool","tool_call_id":"call_1","content":"42"}`)}
	_, err = c.Extend(ctx, lineage.Together(call, result)...)
	must(err)
	_, err = c.Extend(ctx, lineage.Assistant("It is 42."))
	must(err)

	var history []message.Message
	for e, err := range c.Entries(ctx, lineage.Window{}) {
		must(err)
		fmt.Println(e.Position, e.Role)
		history = append(history, message.Decode(e.Body, e.Type, e.Role)...)
	}
	request, err := message.Encode(message.Anthropic, history)
	must(err)
	for _, item := range request.Items {
		fmt.Println(string(item))
	}
	// Output:
	// 1 user
	// 2 assistant
	// 2 tool
	// 3 assistant
	// {"role":"user","content":"What is 6 times 7?"}
	// {"role":"assistant","content":[{"type":"tool_use","id":"call_1","name":"multiply","input":{"a":6,"b":7}}]}
	// {"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1","content":"42"}]}
	// {"role":"assistant","content":"It is 42."}
}
