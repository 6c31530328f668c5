package lineage_test

import (
	"context"
	"fmt"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/message"
)

// A turn with a call of a tool, and what to send to two providers afterwards. The call and its result
// are one step of the history, so that no fork has one without the other.
func ExampleContext_Request() {
	ctx := context.Background()
	store, done := exampleStore()
	defer done()
	c, err := store.NewContext(ctx, lineage.ContextOptions{})
	must(err)

	call := lineage.ToolCall{ID: "call_1", Tool: "multiply", Input: []byte(`{"a":6,"b":7}`)}
	_, err = c.Extend(ctx,
		lineage.User("What is 6 times 7?"),
		lineage.Together(lineage.Calls("", call), lineage.ToolResult("call_1", "multiply", "42")),
		lineage.Assistant("It is 42."))
	must(err)

	for _, api := range []message.Dialect{message.Anthropic, message.Responses} {
		request, err := c.Request(ctx, api, lineage.ResolveOptions{})
		must(err)
		for _, m := range request.Messages {
			fmt.Println(string(m))
		}
	}
	// Output:
	// {"role":"user","content":"What is 6 times 7?"}
	// {"role":"assistant","content":[{"type":"tool_use","id":"call_1","name":"multiply","input":{"a":6,"b":7}}]}
	// {"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1","content":"42"}]}
	// {"role":"assistant","content":"It is 42."}
	// {"type":"message","role":"user","content":"What is 6 times 7?"}
	// {"type":"function_call","call_id":"call_1","name":"multiply","arguments":"{\"a\":6,\"b\":7}"}
	// {"type":"function_call_output","call_id":"call_1","output":"42"}
	// {"type":"message","role":"assistant","content":"It is 42."}
}
