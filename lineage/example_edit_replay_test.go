package lineage_test

import (
	"context"
	"fmt"

	"github.com/lineage-store/lineage/lineage"
)

// An edit forks the history at a message, replaces it and replays later ones: here the user's, for
// the model to answer again.
func ExampleContext_Edit() {
	ctx := context.Background()
	store, done := exampleStore()
	defer done()
	chat, err := store.NewContext(ctx, lineage.ContextOptions{})
	must(err)
	spans, err := chat.Extend(ctx,
		lineage.User("A poem about rain."), lineage.Assistant("Drip, drop."), lineage.User("Make it longer."))
	must(err)

	edited, err := chat.Edit(ctx, spans[0], lineage.User("A poem about snow."), lineage.EditOptions{
		Replay: func(e *lineage.Entry) bool { return e.Role == "user" },
	})
	must(err)
	show("original", chat)
	show("edited", edited)

	entries, err := edited.All(ctx)
	must(err)
	original, err := chat.All(ctx)
	must(err)
	fmt.Println("derived from the original:", entries[0].Origin.ParentID == original[0].Content)
	// Output:
	// original: A poem about rain. | Drip, drop. | Make it longer.
	// edited: A poem about snow. | Make it longer.
	// derived from the original: true
}
