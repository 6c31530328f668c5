package lineage_test

import (
	"context"
	"fmt"

	"github.com/lineage-store/lineage/lineage"
)

// counting replaces a model that summarizes.
type counting struct{}

func (counting) Summarize(_ context.Context, passages []lineage.Passage) (lineage.SummaryText, error) {
	return lineage.SummaryText{Text: fmt.Sprintf("(%d messages about the weather)", len(passages)), Model: "counting"}, nil
}

// A summary replaces messages if the budget is small. The messages stay, and the summary refers to
// them.
func ExampleContext_Resolve() {
	ctx := context.Background()
	store, done := exampleStore()
	defer done()
	chat, err := store.NewContext(ctx, lineage.ContextOptions{})
	must(err)
	for day := range 20 {
		_, err := chat.Extend(ctx, lineage.User(fmt.Sprintf("On day %d of the journey it rained.", day+1)))
		must(err)
	}
	_, err = chat.Summarize(ctx, counting{}, lineage.SummarizeOptions{Keep: 2})
	must(err)
	_, err = chat.Extend(ctx, lineage.User("Was it wet?"))
	must(err)

	resolved, err := chat.Resolve(ctx, lineage.ResolveOptions{Budget: 60})
	must(err)
	for _, part := range resolved.Parts {
		fmt.Println(part.Text())
	}
	summaries, err := chat.EffectiveSummaries(ctx)
	must(err)
	summary := summaries[0]
	length, err := chat.Len(ctx)
	must(err)
	expanded := 0
	for _, err := range store.History(ctx, summary.To, lineage.Window{From: summary.First, To: summary.Last}) {
		must(err)
		expanded++
	}
	fmt.Println(resolved.Omitted, "omitted,", length-summary.Last, "since the summary,", expanded, "expanded")
	// Output:
	// (18 messages about the weather)
	// On day 18 of the journey it rained.
	// On day 19 of the journey it rained.
	// On day 20 of the journey it rained.
	// Was it wet?
	// 0 omitted, 3 since the summary, 18 expanded
}
