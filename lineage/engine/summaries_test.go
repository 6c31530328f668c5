package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/storetest"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/engine"
)

// counting summarizes passages as their number.
type counting struct{}

func (counting) Summarize(_ context.Context, passages []lineage.Passage) (lineage.SummaryText, error) {
	return lineage.SummaryText{Text: fmt.Sprintf("%d messages", len(passages))}, nil
}

// feature: engine/summaries
func TestResolveWithSummaries(t *testing.T) {
	ctx := context.Background()
	store := storetest.New(t)
	chats := chat.On(store)
	e, err := engine.Open(ctx, chats, engine.Options{ChatID: "c", UserID: "ada"})
	require.NoError(t, err)
	require.NoError(t, e.Set(engine.Role("r")))
	for i := range 80 {
		require.NoError(t, e.Set(engine.AssistantText(fmt.Sprintf("message %02d %s", i+1, strings.Repeat("x", 90)), fmt.Sprint(i+1))))
	}
	_, err = e.Save(ctx)
	require.NoError(t, err)
	thread, err := store.FindThread(ctx, "c")
	require.NoError(t, err)
	main, err := thread.Active(ctx)
	require.NoError(t, err)
	_, err = main.Summarize(ctx, counting{}, lineage.SummarizeOptions{Keep: 10})
	require.NoError(t, err)

	all, err := e.Resolve(ctx, engine.ResolveOptions{})
	require.NoError(t, err)
	require.Len(t, all.Messages, 80)
	require.Empty(t, all.Summaries)
	require.Equal(t, "<role>r</role>", all.SystemPrompt)

	want := []chat.Summary{{First: 1, Last: 70, Text: "70 messages"}}
	last, err := e.Resolve(ctx, engine.ResolveOptions{Last: 10})
	require.NoError(t, err)
	require.Len(t, last.Messages, 10)
	require.Equal(t, want, last.Summaries)
	require.False(t, last.Omitted)
	require.Equal(t, "<role>r</role>\n<summary>70 messages</summary>", last.SystemPrompt)

	budget, err := e.Resolve(ctx, engine.ResolveOptions{Budget: 400, Renderer: engine.MarkdownRenderer{}})
	require.NoError(t, err)
	require.Equal(t, want, budget.Summaries)
	require.LessOrEqual(t, budget.Tokens, 400)
	require.GreaterOrEqual(t, len(budget.Messages), 10)
	require.False(t, budget.Omitted)
	require.Contains(t, budget.SystemPrompt, "70 messages")

	few, err := e.Resolve(ctx, engine.ResolveOptions{Last: 3})
	require.NoError(t, err)
	require.True(t, few.Omitted, "between the summary and the last three")

	// A branch has the summaries of its parent for the history they share.
	_, err = e.Rewind(ctx, "75")
	require.NoError(t, err)
	branch, err := e.Resolve(ctx, engine.ResolveOptions{Last: 5})
	require.NoError(t, err)
	require.Equal(t, want, branch.Summaries)
	_, err = e.Rewind(ctx, "60")
	require.NoError(t, err)
	branch, err = e.Resolve(ctx, engine.ResolveOptions{Last: 5})
	require.NoError(t, err)
	require.Empty(t, branch.Summaries)
	require.True(t, branch.Omitted)

	// A summary does not apply to a history that a pending correction forks from.
	require.NoError(t, e.SwitchBranch(ctx, "main"))
	require.NoError(t, e.Set(engine.AssistantText("other", "69")))
	corrected, err := e.Resolve(ctx, engine.ResolveOptions{Last: 5})
	require.NoError(t, err)
	require.Empty(t, corrected.Summaries)
	require.True(t, corrected.Omitted)
}

// A message replaced during its save is a new version; one removed during its save is saved.
func TestChangedDuringSave(t *testing.T) {
	ctx := context.Background()
	b := blocked{chat.On(storetest.New(t)), make(chan struct{}), make(chan struct{})}
	e, err := engine.Open(ctx, b, engine.Options{ChatID: "c", UserID: "ada"})
	require.NoError(t, err)
	require.NoError(t, e.Set(engine.AssistantText("one", "1"), engine.AssistantText("two", "2")))
	saved := make(chan error)
	go func() {
		_, err := e.Save(ctx)
		saved <- err
	}()
	<-b.reached
	n, err := e.Replace(func(f engine.Fragment) bool { return f.ID == "1" }, engine.AssistantText("uno", "1"))
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, 1, e.Remove(func(f engine.Fragment) bool { return f.ID == "2" }))
	close(b.leave)
	require.NoError(t, <-saved)
	require.Len(t, e.Pending(), 1)
	require.Equal(t, "uno", e.Pending()[0].Data)
	r, err := e.Resolve(ctx, engine.ResolveOptions{})
	require.NoError(t, err)
	require.Len(t, r.Messages, 1)
	require.Equal(t, "uno", r.Messages[0].Text())
}

// A context of the chat's thread, such as a subagent's, can be opened once it has a name.
//
// feature: engine/any-branch
func TestEngineOnContext(t *testing.T) {
	ctx := context.Background()
	store := storetest.New(t)
	chats := chat.On(store)
	e, err := engine.Open(ctx, chats, engine.Options{ChatID: "c", UserID: "ada"})
	require.NoError(t, err)
	require.NoError(t, e.Set(engine.User("a task"), engine.AssistantText("I will ask.", "a1")))
	_, err = e.Save(ctx)
	require.NoError(t, err)
	thread, err := store.FindThread(ctx, "c")
	require.NoError(t, err)
	main, err := thread.Active(ctx)
	require.NoError(t, err)
	subagent, err := main.Fork(ctx, lineage.ForkOptions{Sees: &lineage.Filter{Roles: []string{"user"}}})
	require.NoError(t, err)
	require.NoError(t, thread.NameBranch(ctx, "helper", subagent))

	helper, err := engine.Open(ctx, chats, engine.Options{ChatID: "c", UserID: "ada", Branch: "helper"})
	require.NoError(t, err)
	require.NoError(t, helper.Set(engine.AssistantText("found it", "h1")))
	_, err = helper.Save(ctx)
	require.NoError(t, err)
	r, err := helper.Resolve(ctx, engine.ResolveOptions{})
	require.NoError(t, err)
	require.Len(t, r.Messages, 2)
	require.Equal(t, []string{"a task", "found it"}, []string{r.Messages[0].Text(), r.Messages[1].Text()})
	_, err = subagent.Return(ctx, lineage.Assistant("It is found."))
	require.NoError(t, err)
	r, err = e.Resolve(ctx, engine.ResolveOptions{})
	require.NoError(t, err)
	require.Len(t, r.Messages, 3)
	require.Equal(t, "It is found.", r.Messages[2].Text())
	active, err := chats.ActiveBranch(ctx, "c")
	require.NoError(t, err)
	require.Equal(t, "main", active.Name)
}

// The text of a document is sent, of its latest revision unless all are asked for.
//
// feature: lineage/document-latest
func TestResolveRevisions(t *testing.T) {
	ctx := context.Background()
	store := storetest.New(t)
	thread, err := store.CreateThread(ctx, lineage.ThreadOptions{SourceID: "c", UserID: "ada"})
	require.NoError(t, err)
	main, err := thread.Active(ctx)
	require.NoError(t, err)
	revision := func(document, text string) lineage.Item {
		return lineage.Item{Kind: lineage.Document, Document: document, Body: []byte(text), Type: "text/markdown"}
	}
	_, err = main.Extend(ctx, lineage.User("q"), revision("plan", "p1"), revision("notes", "n1"))
	require.NoError(t, err)
	_, err = main.Extend(ctx, lineage.Together(lineage.User("r"), revision("plan", "p2")))
	require.NoError(t, err)
	_, err = main.Extend(ctx, lineage.Item{Kind: lineage.Document, Document: "scan", Body: []byte{0, 1}, Type: "image/png"}, revision("plan", "p3"))
	require.NoError(t, err)
	e, err := engine.Open(ctx, chat.On(store), engine.Options{ChatID: "c", UserID: "ada"})
	require.NoError(t, err)
	said := func(o engine.ResolveOptions) (texts []string) {
		r, err := e.Resolve(ctx, o)
		require.NoError(t, err)
		require.False(t, r.Omitted)
		for i := range r.History {
			texts = append(texts, r.History[i].String())
		}
		return texts
	}
	latest := []string{"q", "[text/markdown notes]\n\nn1", "r", "[image/png scan]", "[text/markdown plan]\n\np3"}
	require.Equal(t, latest, said(engine.ResolveOptions{}))
	require.Equal(t, latest, said(engine.ResolveOptions{Last: len(latest)}), "what is not sent does not count")
	require.Equal(t, []string{
		"q", "[text/markdown plan]\n\np1", "[text/markdown notes]\n\nn1", "r\n\n[text/markdown plan]\n\np2", "[image/png scan]", "[text/markdown plan]\n\np3",
	}, said(engine.ResolveOptions{AllRevisions: true}))

	both, err := main.Fork(ctx, lineage.ForkOptions{Thread: thread.ID()})
	require.NoError(t, err)
	_, err = both.Extend(ctx, lineage.Together(lineage.User("s"), revision("draft", "d1"), revision("draft", "d2")))
	require.NoError(t, err)
	require.NoError(t, thread.NameBranch(ctx, "both", both))
	require.NoError(t, e.SwitchBranch(ctx, "both"))
	require.Equal(t, append(slices.Clone(latest), "s\n\n[text/markdown draft]\n\nd2"), said(engine.ResolveOptions{}), "two revisions in one turn")
	require.NoError(t, e.SwitchBranch(ctx, "main"))

	require.NoError(t, store.Erase(ctx, content.Sum([]byte("p3"))))
	require.Equal(t, []string{"q", "[text/markdown notes]\n\nn1", "r\n\n[text/markdown plan]\n\np2", "[image/png scan]"}, said(engine.ResolveOptions{}))
}
