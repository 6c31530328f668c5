package conversation_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
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
	store, err := lineage.Open(ctx, dir, lineage.Options{})
	check(err)
	defer store.Close()

	conv, err := conversation.Open(ctx, store, "session-1", conversation.Options{})
	check(err)
	check(conv.AddMessage(ctx, conversation.Message{Role: "user", Content: "Name a colour."}))
	check(conv.AddMessage(ctx, conversation.Message{Role: "assistant", Content: "Blue."}))

	retry, err := conv.ForkFromMessage(ctx, "Another answer", 1) // the question only
	check(err)
	check(conv.AddMessage(ctx, conversation.Message{Role: "assistant", Content: "Green."}))

	_, err = conv.Checkout(ctx, conversation.Main)
	check(err)
	_, err = conv.Merge(ctx, retry.ID, conversation.Append)
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
	store, err := lineage.Open(ctx, dir, lineage.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	conv, err := conversation.Open(ctx, store, "session-1", conversation.Options{})
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
	// now on try-again
	// now on main
}

func Example_import() {
	ctx := context.Background()
	check := func(err error) {
		if err != nil {
			log.Fatal(err)
		}
	}
	root, err := os.MkdirTemp("", "branches")
	check(err)
	defer os.RemoveAll(root)
	session := filepath.Join(root, "session-1")
	check(os.Mkdir(session, 0o755))
	for name, text := range map[string]string{
		"main.json": `{"id":"main","name":"Main conversation","messages":[
			{"role":"user","content":"Name a colour."},{"role":"assistant","content":"Blue."}],"createdAt":"2025-03-01T10:00:00Z"}`,
		"branch_1.json": `{"id":"branch_1","name":"Another answer","parentId":"main","parentMessageIndex":1,"messages":[
			{"role":"user","content":"Name a colour."},{"role":"assistant","content":"Green."}],"createdAt":"2025-03-01T10:05:00Z"}`,
		"branch_2.json": `{"id":"branch_2","name":"Cut sh`,
	} {
		check(os.WriteFile(filepath.Join(session, name), []byte(text), 0o644))
	}
	dir, err := os.MkdirTemp("", "agent.lineage")
	check(err)
	defer os.RemoveAll(dir)
	store, err := lineage.Open(ctx, dir, lineage.Options{})
	check(err)
	defer store.Close()

	report, err := importer.Import(ctx, store, archive.Path(root), importer.Options{})
	check(err)
	fmt.Println(report.NewMessages, "messages")
	for _, damage := range report.Skipped {
		fmt.Println(damage)
	}
	conv, err := conversation.Open(ctx, store, "session-1", conversation.Options{})
	check(err)
	tree, err := conv.FormatTree(ctx)
	check(err)
	fmt.Print(tree)
	// Output:
	// 3 messages
	// Main conversation [main] · 2 messages *
	// └── Another answer [branch_1] · 2 messages
}
