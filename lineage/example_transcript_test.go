package lineage_test

import (
	"context"
	"fmt"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/transcript"
)

// A transcript is a history as people read it, whatever format its messages have.
func ExampleStore_Transcript() {
	ctx := context.Background()
	store, done := exampleStore()
	defer done()
	c, err := store.NewContext(ctx, lineage.ContextOptions{})
	must(err)
	_, err = c.Extend(ctx,
		lineage.User("Does it build?"),
		lineage.Item{Role: "assistant", Type: content.TypeJSON, Body: []byte(`{"content":[{"type":"tool_use","id":"1","name":"Bash","input":{"command":"go build"}}]}`)},
		lineage.Item{Role: "user", Type: content.TypeJSON, Body: []byte(`{"content":[{"type":"tool_result","tool_use_id":"1","content":"Exit code 1","is_error":true}]}`)},
		lineage.Assistant("No."))
	must(err)
	tip, err := c.Tip(ctx)
	must(err)

	for i, err := range store.Transcript(ctx, tip, lineage.Window{}, transcript.Options{}) {
		must(err)
		switch i.Kind {
		case transcript.Call:
			fmt.Println(i.Call.Tool, "runs", i.Call.Title)
			for _, r := range i.Call.Results {
				fmt.Println("and exits with", *r.Exit)
			}
		default:
			fmt.Printf("%v: %s\n", i.Kind, i.Text)
		}
	}
	// Output:
	// prompt: Does it build?
	// Bash runs go build
	// and exits with 1
	// answer: No.
}
