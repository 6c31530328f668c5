package lineage_test

import (
	"context"
	"sync"

	"github.com/lineage-store/lineage/lineage"
)

// Several models answer the same question. One answer is chosen, and all are kept.
func ExampleContext_Alternatives() {
	ctx := context.Background()
	store, done := exampleStore()
	defer done()
	chat, err := store.NewContext(ctx, lineage.ContextOptions{})
	must(err)
	_, err = chat.Extend(ctx, lineage.User("What is a DAG?"))
	must(err)

	large, small := "large", "small"
	offered, err := chat.Alternatives(ctx, lineage.Overrides{Model: &large}, lineage.Overrides{Model: &small})
	must(err)
	var calls sync.WaitGroup
	for _, one := range offered {
		calls.Go(func() {
			prompt, err := one.Resolve(ctx, lineage.ResolveOptions{})
			must(err)
			answer := lineage.Assistant("says the " + prompt.Model + " one") // the model call
			_, err = one.Extend(ctx, answer.From(prompt.Model))
			must(err)
		})
	}
	calls.Wait()

	must(chat.Choose(ctx, offered[0]))
	show("chosen", chat)
	must(chat.Choose(ctx, offered[1]))
	show("chosen instead", chat)
	// Output:
	// chosen: What is a DAG? | says the large one
	// chosen instead: What is a DAG? | says the small one
}
