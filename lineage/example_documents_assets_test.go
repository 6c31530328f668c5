package lineage_test

import (
	"context"
	"fmt"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
)

// Histories have document revisions and assets as well as messages.
// feature: lineage/asset
func ExampleTogether() {
	ctx := context.Background()
	store, done := exampleStore()
	defer done()
	chat, err := store.NewContext(ctx, lineage.ContextOptions{})
	must(err)
	draft, err := chat.Extend(ctx, lineage.Together(lineage.User("Here are my draft and a photo."),
		lineage.Item{Kind: lineage.Document, Document: "essay", Revision: 1, Type: content.TypeMarkdown, Body: []byte("# Essay")},
		lineage.Item{Kind: lineage.Asset, Filename: "photo.png", Type: content.TypePNG, Body: []byte("\x89PNG")}))
	must(err)
	entries, err := store.Span(ctx, draft[0])
	must(err)
	_, err = chat.Extend(ctx, lineage.Item{
		Kind: lineage.Document, Document: "essay", Revision: 2, Type: content.TypeMarkdown, Body: []byte("# A better essay"),
		Origin: lineage.Origin{Kind: content.OriginAssistant, ModelID: "large", ParentID: entries[1].Content},
	})
	must(err)

	for e, err := range chat.Entries(ctx, lineage.Window{}) {
		must(err)
		switch e.Kind {
		case lineage.Message:
			fmt.Printf("%d %s: %s\n", e.Position, e.Role, e.Excerpt())
		case lineage.Document:
			fmt.Printf("%d %s, revision %d: %s\n", e.Position, e.Document, e.Revision, e.Excerpt())
		case lineage.Asset:
			fmt.Printf("%d %s: %s, %d bytes\n", e.Position, e.Filename, e.Type, e.Size)
		}
	}
	last, err := chat.Last(ctx, 1)
	must(err)
	chain, err := store.Provenance(ctx, last[0].Content)
	must(err)
	fmt.Println("the second revision was made by the", chain[0].Origin.Kind, "from the first:", chain[1].ID == entries[1].Content)
	// Output:
	// 1 user: Here are my draft and a photo.
	// 1 essay, revision 1: # Essay
	// 1 photo.png: image/png, 4 bytes
	// 2 essay, revision 2: # A better essay
	// the second revision was made by the assistant from the first: true
}
