package lineage_test

import (
	"context"
	"fmt"

	"github.com/lineage-store/lineage/lineage"
)

// A subagent sees a part of the history and works on its own. Its result is added to the parent
// with a reference to it.
func ExampleContext_Fork_subagent() {
	ctx := context.Background()
	store, done := exampleStore()
	defer done()
	agent, err := store.NewContext(ctx, lineage.ContextOptions{})
	must(err)
	_, err = agent.Extend(ctx,
		lineage.User("Write a report."), lineage.Assistant("I shall look things up."), lineage.User("Count the ships."))
	must(err)

	prompt := "You count things."
	counter, err := agent.Fork(ctx, lineage.ForkOptions{
		Sees:      &lineage.Filter{Window: lineage.Window{Last: 1}},
		Overrides: lineage.Overrides{SystemPrompt: &prompt},
	})
	must(err)
	_, err = counter.Extend(ctx, lineage.ToolResult("", "harbour", "a list of 12 ships"))
	must(err)
	_, err = counter.Return(ctx, lineage.Assistant("There are 12."))
	must(err)

	show("subagent", counter)
	show("agent", agent)
	last, err := agent.Last(ctx, 1)
	must(err)
	chain, err := store.Provenance(ctx, last[0].Content)
	must(err)
	work, err := counter.Last(ctx, 1)
	must(err)
	fmt.Println("derived from what the subagent found:", chain[1].ID == work[0].Content)
	// Output:
	// subagent: Count the ships. | a list of 12 ships
	// agent: Write a report. | I shall look things up. | Count the ships. | There are 12.
	// derived from what the subagent found: true
}
