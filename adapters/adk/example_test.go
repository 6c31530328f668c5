package adk_test

import (
	"context"
	"fmt"
	"iter"
	"log"
	"os"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/genai"

	"github.com/lineage-store/lineage/adapters/adk"
	"github.com/lineage-store/lineage/lineage"
)

// An agent with its sessions in a store, and a branch from an earlier event. The model is a stand-in
// that repeats what it was asked, so that the example runs offline.
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

	assistant, err := llmagent.New(llmagent.Config{Name: "assistant", Model: echo{}})
	check(err)
	r, err := runner.New(runner.Config{
		AppName: "shop", Agent: assistant, SessionService: adk.NewService(store), AutoCreateSession: true,
	})
	check(err)
	ask := func(text string) {
		for e, err := range r.Run(ctx, "ada", "session-1", genai.NewContentFromText(text, genai.RoleUser), agent.RunConfig{}) {
			check(err)
			fmt.Println(e.Author+":", e.Content.Parts[0].Text)
		}
	}
	ask("A red hat, please.")
	ask("And shoes.")

	// The session is a thread. A new branch goes back to the first answer, with the state it had there.
	thread, err := store.FindThread(ctx, "shop/ada/session-1")
	check(err)
	main, err := thread.Active(ctx)
	check(err)
	entries, err := main.All(ctx)
	check(err)
	_, err = thread.CreateBranch(ctx, "gloves", lineage.BranchOptions{At: entries[1].Span, Switch: true})
	check(err)
	ask("And gloves.")
	branches, err := thread.Branches(ctx)
	check(err)
	fmt.Println(len(branches), "branches")
	// Output:
	// assistant: 1 message so far: A red hat, please.
	// assistant: 3 messages so far: And shoes.
	// assistant: 3 messages so far: And gloves.
	// 2 branches
}

type echo struct{}

func (echo) Name() string { return "echo" }

func (echo) GenerateContent(_ context.Context, r *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		said := "message"
		if len(r.Contents) > 1 {
			said = "messages"
		}
		text := fmt.Sprintf("%d %s so far: %s", len(r.Contents), said, r.Contents[len(r.Contents)-1].Parts[0].Text)
		yield(&model.LLMResponse{Content: genai.NewContentFromText(text, genai.RoleModel), TurnComplete: true}, nil)
	}
}
