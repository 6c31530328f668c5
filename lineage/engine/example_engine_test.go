package engine_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/engine"
)

// A chat is saved, opened again and continued at an earlier message.
func Example() {
	ctx := context.Background()
	check := func(err error) {
		if err != nil {
			log.Fatal(err)
		}
	}
	dir, err := os.MkdirTemp("", "chats.lineage")
	check(err)
	defer os.RemoveAll(dir)
	store, err := lineage.Open(ctx, dir, lineage.Options{})
	check(err)
	defer store.Close()
	chats := chat.On(store)

	e, err := engine.Open(ctx, chats, engine.Options{ChatID: "chat-001", UserID: "user-001"})
	check(err)
	check(e.Set(
		engine.Role("You are helpful"),
		engine.Hint("Be brief"),
		engine.User("Name a colour."),
	))
	send, err := e.Resolve(ctx, engine.ResolveOptions{Renderer: engine.XMLRenderer{}}) // the input of the model
	check(err)
	fmt.Println(send.SystemPrompt)
	fmt.Println(len(send.Messages), "message")
	check(e.Set(engine.AssistantText("Blue.", "answer-1")))
	_, err = e.Save(ctx)
	check(err)

	// Later: the messages are stored, the context is set again.
	e, err = engine.Open(ctx, chats, engine.Options{ChatID: "chat-001", UserID: "user-001"})
	check(err)
	check(e.Set(engine.User("Another one?"), engine.AssistantText("Red.", "")))
	_, err = e.Save(ctx)
	check(err)

	branch, err := e.Rewind(ctx, "answer-1")
	check(err)
	fmt.Println(branch.Name, "has", branch.MessageCount, "messages")
	check(e.Set(engine.User("Why blue?")))
	_, err = e.Save(ctx)
	check(err)
	branches, err := e.Branches(ctx)
	check(err)
	for _, b := range branches {
		fmt.Println(b.Name, b.MessageCount, b.IsActive)
	}
	// Output:
	// <role>You are helpful</role>
	// <hint>Be brief</hint>
	// 1 message
	// main-v2 has 2 messages
	// main 4 false
	// main-v2 3 true
}

// An answer is corrected. The first one stays on its branch.
func ExampleLastAssistantMessage() {
	ctx := context.Background()
	check := func(err error) {
		if err != nil {
			log.Fatal(err)
		}
	}
	dir, err := os.MkdirTemp("", "chats.lineage")
	check(err)
	defer os.RemoveAll(dir)
	store, err := lineage.Open(ctx, dir, lineage.Options{})
	check(err)
	defer store.Close()

	e, err := engine.Open(ctx, chat.On(store), engine.Options{ChatID: "chat-001", UserID: "user-001"})
	check(err)
	check(e.Set(engine.User("2 + 2?"), engine.AssistantText("5", "")))
	_, err = e.Save(ctx)
	check(err)

	check(e.Set(engine.LastAssistantMessage("4")))
	_, err = e.Save(ctx)
	check(err)
	now, err := e.Resolve(ctx, engine.ResolveOptions{})
	check(err)
	for _, m := range now.Messages {
		fmt.Println(m.Role+":", m.Text())
	}
	fmt.Println("on", e.Branch())
	// Output:
	// user: 2 + 2?
	// assistant: 4
	// on main-v2
}
