package lineage_test

import (
	"context"
	"fmt"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// The histories of subagents are not alternatives to the first message of their parent's, and have
// alternatives of their own.
func TestAlternativesToFirstMessages(t *testing.T) {
	s := newStore(t)
	thread, c := newThread(t, s)
	say(t, c, "q", "answer")
	firstOf := func(c *lineage.Context) lineage.SpanRef {
		first, err := s.At(bg, tip(t, c), 1)
		require.NoError(t, err)
		return first
	}
	child := func(branch *lineage.Context, o lineage.ForkOptions, text string) *lineage.Context {
		made, err := branch.Fork(bg, o)
		require.NoError(t, err)
		say(t, made, text)
		return made
	}
	edit := func(branch *lineage.Context, text string) *lineage.Context {
		edited, err := branch.Edit(bg, firstOf(branch), lineage.Item{Body: []byte(text)}, lineage.EditOptions{})
		require.NoError(t, err)
		return edited
	}
	task := child(c, lineage.ForkOptions{Empty: true}, "task")
	copied := child(c, lineage.ForkOptions{Sees: &lineage.Filter{}}, "copy's own")
	nested := child(task, lineage.ForkOptions{Empty: true}, "nested")
	edited := edit(c, "q edited")
	edit(edited, "q edited twice")
	child(task, lineage.ForkOptions{}, "goes on with the task")
	retried, err := c.Retry(bg, firstOf(c), lineage.Overrides{})
	require.NoError(t, err)
	say(t, retried, "q retried")
	branch, err := thread.CreateBranch(bg, "other", lineage.BranchOptions{From: task, Empty: true})
	require.NoError(t, err)
	say(t, branch, "q of a branch")
	_, err = thread.AddAfter(bg, lineage.SpanRef{}, lineage.User("q hung"))
	require.NoError(t, err)
	taskEdited := edit(task, "task edited")
	taskRetried, err := task.Retry(bg, firstOf(task), lineage.Overrides{})
	require.NoError(t, err)
	say(t, taskRetried, "task retried")

	main := []string{"q", "q edited", "q edited twice", "q retried", "q of a branch", "q hung"}
	tasks := []string{"task", "task edited", "task retried"}
	for _, in := range []*lineage.Context{c, edited, retried, branch} {
		require.Equal(t, main, began(t, in, firstOf(in)))
	}
	for _, in := range []*lineage.Context{task, taskEdited, taskRetried} {
		require.Equal(t, tasks, began(t, in, firstOf(in)))
	}
	require.Equal(t, []string{"q"}, began(t, copied, firstOf(copied)))
	require.Equal(t, []string{"nested"}, began(t, nested, firstOf(nested)))

	// Alternatives offered to an empty subagent are not alternatives in the thread.
	silent, err := c.Fork(bg, lineage.ForkOptions{Empty: true})
	require.NoError(t, err)
	offered, err := silent.Alternatives(bg, lineage.Overrides{}, lineage.Overrides{})
	require.NoError(t, err)
	say(t, offered[0], "offer 1")
	say(t, offered[1], "offer 2")
	for range 2 {
		require.Equal(t, main, began(t, c, firstOf(c)))
		require.Equal(t, []string{"offer 1", "offer 2"}, began(t, offered[1], firstOf(offered[1])))
		require.NoError(t, silent.Choose(bg, offered[0]))
	}

	// If a context switches to an edit, the original remains as an alternative.
	require.NoError(t, c.MoveTo(bg, tip(t, edited), "choose"))
	require.Equal(t, main, began(t, c, firstOf(c)))
	require.Equal(t, tasks, began(t, task, firstOf(task)))
}

// Alternatives to a first message are found without reading other threads.
func TestAlternativesToFirstMessageReadOneThread(t *testing.T) {
	below := newStore(t)
	engine := &reads{Engine: write.Of(below).Engine()}
	s := lineage.New(engine)
	_, c := newThread(t, s)
	first := say(t, c, "q")
	cost := func() int {
		engine.n = 0
		require.Equal(t, []string{"q"}, began(t, c, first))
		return engine.n
	}
	before := cost()
	for i := range 50 {
		_, other := newThread(t, s)
		say(t, other, fmt.Sprint("elsewhere ", i))
	}
	require.Equal(t, before, cost())
}

// Continuations that are more than were asked for are not all read.
func TestContinuationsAreLimited(t *testing.T) {
	engine := &reads{Engine: write.Of(newStore(t)).Engine()}
	s := lineage.New(engine)
	thread, c := newThread(t, s)
	first := say(t, c, "q")
	var answers []lineage.SpanRef
	for i := range 40 {
		b, err := thread.CreateBranch(bg, fmt.Sprint("b", i), lineage.BranchOptions{At: first})
		require.NoError(t, err)
		answers = append(answers, say(t, b, fmt.Sprint("a", i)))
	}
	cost := func(most int, want []lineage.SpanRef) int {
		engine.n = 0
		got, err := c.Continuations(bg, first, most)
		require.NoError(t, err)
		require.Equal(t, want, got)
		return engine.n
	}
	whole := cost(0, answers)
	require.Equal(t, whole, cost(40, answers))
	require.Less(t, cost(3, nil), whole/4)
}

// reads counts reads of runs and contexts.
type reads struct {
	backend.Engine
	n int
}

func (r *reads) Run(ctx context.Context, id structure.RunID) (structure.RunInfo, error) {
	r.n++
	return r.Engine.Run(ctx, id)
}

func (r *reads) Last(ctx context.Context, id structure.RunID) (structure.SpanRef, error) {
	r.n++
	return r.Engine.Last(ctx, id)
}

func (r *reads) ForksAt(ctx context.Context, at structure.SpanRef) iter.Seq2[structure.RunInfo, error] {
	return counted(&r.n, r.Engine.ForksAt(ctx, at))
}

func (r *reads) Contexts(ctx context.Context, thread structure.ThreadID, after structure.ContextID) iter.Seq2[backend.Context, error] {
	return counted(&r.n, r.Engine.Contexts(ctx, thread, after))
}

func counted[T any](n *int, all iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for v, err := range all {
			*n++
			if !yield(v, err) {
				return
			}
		}
	}
}
