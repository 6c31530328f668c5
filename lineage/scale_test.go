package lineage_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/backend/backendtest"
	"github.com/lineage-store/lineage/structure"
)

// crowd is a store with many threads, and one thread with many branches, checkpoints and unnamed
// contexts.
type crowd struct {
	*lineage.Store
	engine *backendtest.Counting
	thread *lineage.Thread
	main   *lineage.Context
	first  lineage.SpanRef
}

// newCrowd creates a crowd with n of each.
func newCrowd(t testing.TB, n int) *crowd {
	t.Helper()
	below, err := lineage.Open(bg, t.TempDir(), lineage.Options{Durability: lineage.Normal})
	require.NoError(t, err)
	c := &crowd{engine: backendtest.NewCounting(write.Of(below).Engine())}
	c.Store = lineage.New(c.engine)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	c.thread, c.main = newThread(t, c.Store)
	c.first = say(t, c.main, "one")
	say(t, c.main, "two")
	now := time.Now()
	var records []structure.Record
	for i := range n {
		branch := &structure.Context{ID: structure.NewID[lineage.ContextID](), Thread: c.thread.ID(), Parent: c.main.ID(), Base: c.first, Tip: c.first, CreatedAt: now}
		unnamed := *branch
		unnamed.ID = structure.NewID[lineage.ContextID]()
		thread := &structure.Thread{ID: write.SourceThread(fmt.Sprint("other ", i)), SourceID: fmt.Sprint("other ", i), CreatedAt: now, UpdatedAt: now}
		records = append(records, branch, &unnamed, thread,
			&structure.Branch{Thread: c.thread.ID(), Name: fmt.Sprintf("main-v%d", i+2), Context: branch.ID, CreatedAt: now},
			&structure.Checkpoint{ID: structure.NewID[structure.CheckpointID](), Thread: c.thread.ID(), Name: fmt.Sprint("checkpoint ", i), Span: c.first, CreatedAt: now})
	}
	_, err = write.Of(below).Engine().Apply(bg, &structure.Commit{Records: records}, backend.Options{})
	require.NoError(t, err)
	return c
}

// operations returns operations on a crowd, in an order in which each is possible.
func (c *crowd) operations(t testing.TB) []operation {
	must := func(err error) { t.Helper(); require.NoError(t, err) }
	on := func(name string) *lineage.Context {
		t.Helper()
		found, err := c.thread.BranchContext(bg, name)
		must(err)
		return found
	}
	var fork, alone *lineage.Context
	var err error
	return []operation{
		{"create a thread", func() { _, err = c.CreateThread(bg, lineage.ThreadOptions{SourceID: "mine"}); must(err) }},
		{"find a thread", func() { _, err = c.FindThread(bg, "mine"); must(err) }},
		{"ensure a thread", func() { _, err = c.OpenThread(bg, lineage.ThreadOptions{SourceID: "mine"}); must(err) }},
		{"list threads", func() { c.page(t, lineage.ThreadQuery{}) }},
		{"list threads of a user", func() { nobody := "nobody"; c.page(t, lineage.ThreadQuery{User: &nobody}) }},
		{"list threads by their titles", func() { c.page(t, lineage.ThreadQuery{TitlePrefix: "none"}) }},
		{"list contexts alone", func() { require.Empty(t, gathered(t, c.Contexts(bg))) }},
		{"update a thread", func() { must(c.thread.Update(bg, func(i *lineage.ThreadInfo) error { i.Title = "title"; return nil })) }},
		{"look at a thread", func() { _, err = c.thread.Info(bg); must(err) }},
		{"delete a thread", func() { found, err := c.FindThread(bg, "mine"); must(err); must(found.Delete(bg)) }},
		{"create a branch", func() { _, err = c.thread.CreateBranch(bg, "mine", lineage.BranchOptions{}); must(err) }},
		{"look at a branch", func() { _, err = c.thread.Branch(bg, "mine"); must(err) }},
		{"extend", func() { _, err = on("mine").Extend(bg, lineage.User("hello").WithID("hello")); must(err) }},
		{"find by the caller's id", func() { _, err = c.thread.Find(bg, "hello"); must(err) }},
		{"merge", func() { _, err = c.main.Merge(bg, on("mine")); must(err) }},
		{"switch", func() { must(c.thread.Switch(bg, "mine")) }},
		{"look at the active branch", func() { _, err = c.thread.Branch(bg, ""); must(err) }},
		{"rewind a context", func() { must(on("mine").MoveTo(bg, c.first, "rewind")) }},
		{"undo", func() { must(on("mine").Undo(bg)) }},
		{"move", func() { must(on("mine").MoveTo(bg, c.first, "test")) }},
		{"set overrides", func() { model := "m"; must(setOverrides(on("mine"), lineage.Overrides{Model: &model})) }},
		{"rename a branch", func() { must(renameBranch(c.thread, "mine", "ours")) }},
		{"delete the active branch", func() { must(c.thread.DeleteBranch(bg, "ours")) }},
		{"aside", func() { _, err = aside(c.thread); must(err) }},
		{"rewind to a new branch", func() { _, err = rewind(c.thread, c.first); must(err) }},
		{"delete another branch", func() { must(c.thread.DeleteBranch(bg, "main-v3")) }},
		{"checkpoint", func() { _, err = c.thread.SetCheckpoint(bg, "here", lineage.CheckpointOptions{}); must(err) }},
		{"move a checkpoint", func() { _, err = c.thread.SetCheckpoint(bg, "here", lineage.CheckpointOptions{At: c.first}); must(err) }},
		{"find a checkpoint", func() { _, err = c.thread.Checkpoint(bg, "here"); must(err) }},
		{"restore", func() {
			at, err := c.thread.Checkpoint(bg, "here")
			must(err)
			_, err = rewind(c.thread, at.Span)
			must(err)
		}},
		{"delete a checkpoint", func() { must(c.thread.DeleteCheckpoint(bg, "here")) }},
		{"fork", func() { fork, err = c.main.Fork(bg, lineage.ForkOptions{}); must(err) }},
		{"extend a fork", func() { _, err = fork.Extend(bg, lineage.User("on a fork")); must(err) }},
		{"name a fork", func() { must(c.thread.NameBranch(bg, "named", fork)) }},
		{"fork again", func() { fork, err = c.main.Fork(bg, lineage.ForkOptions{}); must(err) }},
		{"delete a context", func() { must(fork.Delete(bg)) }},
		{"make a context alone", func() { alone, err = c.NewContext(bg, lineage.ContextOptions{}); must(err) }},
		{"delete a context alone", func() { must(alone.Delete(bg)) }},
		{"rename main", func() { must(renameBranch(c.thread, "main", "was main")) }},
		{"delete a branch without main", func() { must(c.thread.Switch(bg, "named")); must(c.thread.DeleteBranch(bg, "named")) }},
		{"delete who has children", func() { must(c.thread.DeleteBranch(bg, "was main")) }},
	}
}

// page reads the first page of a listing.
func (c *crowd) page(t testing.TB, q lineage.ThreadQuery) {
	n := 0
	for _, err := range c.Threads(bg, q) {
		require.NoError(t, err)
		if n++; n == 20 {
			return
		}
	}
}

type operation struct {
	name string
	do   func()
}

// No operation reads all branches, contexts, checkpoints or threads.
//
// feature: lineage/extend
// feature: lineage/fork
//
//test:norace
func TestOperationsDoNotGrow(t *testing.T) {
	backendtest.RequireScale(t, func(n int) map[string]int64 {
		c := newCrowd(t, n)
		costs := make(map[string]int64)
		for _, o := range c.operations(t) {
			costs[o.name] = c.engine.Cost(o.do)
		}
		return costs
	})
}
