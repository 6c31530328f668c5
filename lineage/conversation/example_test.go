package conversation_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/conversation"
)

func Example() {
	ctx := context.Background()
	check := func(err error) {
		if err != nil {
			log.Fatal(err)
		}
	}
	dir, err := os.MkdirTemp("", "agent.lineage")
	check(err)
	defer os.RemoveAll(dir)
	store, err := lineage.Open(ctx, dir, nil)
	check(err)
	defer store.Close()

	conv, err := conversation.Open(ctx, store, "session-1", nil)
	check(err)
	check(conv.AddMessage(ctx, conversation.Message{Role: "user", Content: "Name a colour."}))
	check(conv.AddMessage(ctx, conversation.Message{Role: "assistant", Content: "Blue."}))

	retry, err := conv.ForkFromMessage(ctx, "Another answer", 1) // the question only
	check(err)
	check(conv.AddMessage(ctx, conversation.Message{Role: "assistant", Content: "Green."}))

	_, err = conv.Checkout(ctx, conversation.Main)
	check(err)
	_, err = conv.Merge(ctx, retry.ID, lineage.Append)
	check(err)
	messages, err := conv.Messages(ctx)
	check(err)
	for _, m := range messages {
		fmt.Printf("%s: %s\n", m.Role, m.Content)
	}
	tree, err := conv.FormatTree(ctx)
	check(err)
	fmt.Print(tree)
	// Output:
	// user: Name a colour.
	// assistant: Blue.
	// assistant: Green.
	// Main conversation [main] · 3 messages *
	// └── Another answer [another-answer] · 2 messages
}

func ExampleConversation_On() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "agent.lineage")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	store, err := lineage.Open(ctx, dir, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	conv, err := conversation.Open(ctx, store, "session-1", nil)
	if err != nil {
		log.Fatal(err)
	}
	cancel := conv.On(func(e conversation.Event) {
		switch e.Kind {
		case conversation.BranchForked:
			fmt.Printf("%q was forked from %s\n", e.Name, e.From)
		case conversation.BranchCheckout:
			fmt.Printf("now on %s\n", e.To)
		}
	})
	defer cancel()
	if _, err := conv.Fork(ctx, "Try again"); err != nil {
		log.Fatal(err)
	}
	if _, err := conv.Checkout(ctx, conversation.Main); err != nil {
		log.Fatal(err)
	}
	// Output:
	// "Try again" was forked from main
	// now on main
}
