package lineage_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/structure"
)

// feature: lineage/overrides
func TestEffectiveOverridesInherit(t *testing.T) {
	s := newStore(t)
	thread, err := s.CreateThread(bg, lineage.ThreadOptions{Overrides: lineage.Overrides{
		SystemPrompt: pointer("be brief"), JSON: []byte(`{"temperature":0}`),
	}})
	require.NoError(t, err)
	main, err := thread.Active(bg)
	require.NoError(t, err)
	child, err := main.Fork(bg, lineage.ForkOptions{Overrides: lineage.Overrides{Model: pointer("large")}})
	require.NoError(t, err)
	grandchild, err := child.Fork(bg, lineage.ForkOptions{Overrides: lineage.Overrides{SystemPrompt: pointer("")}})
	require.NoError(t, err)

	effective := func(c *lineage.Context) lineage.Overrides {
		o, err := c.Effective(bg)
		require.NoError(t, err)
		return o
	}
	require.Equal(t, lineage.Overrides{SystemPrompt: pointer("be brief"), Model: pointer("large"), JSON: []byte(`{"temperature":0}`)}, effective(child))
	require.Equal(t, lineage.Overrides{SystemPrompt: pointer(""), Model: pointer("large"), JSON: []byte(`{"temperature":0}`)}, effective(grandchild),
		"an empty prompt is a prompt")
	require.NoError(t, setOverrides(child, lineage.Overrides{}))
	require.Nil(t, effective(grandchild).Model)
	require.Equal(t, lineage.Overrides{SystemPrompt: pointer("be brief"), JSON: []byte(`{"temperature":0}`)}, effective(child))
}

// feature: lineage/overrides-merge
func TestSettingsMerge(t *testing.T) {
	s := newStore(t)
	parent, err := s.NewContext(bg, lineage.ContextOptions{Overrides: lineage.Overrides{JSON: []byte(`{"temperature": 0.50, "stop":["x"], "tools":{"a":1}}`)}})
	require.NoError(t, err)
	with := func(branch *lineage.Context, settings string) *lineage.Context {
		child, err := branch.Fork(bg, lineage.ForkOptions{Overrides: lineage.Overrides{JSON: []byte(settings)}})
		require.NoError(t, err)
		return child
	}
	settings := func(c *lineage.Context) string {
		o, err := c.Effective(bg)
		require.NoError(t, err)
		return string(o.JSON)
	}
	child := with(parent, `{"top_p":1,"tools":{"b":2}}`)
	grandchild := with(child, `{"temperature":null,"tools":{"a":null}}`)
	again := with(grandchild, `{"temperature":{"x":null}}`)
	list := with(grandchild, `[1]`)
	want := []string{
		`{"temperature": 0.50, "stop":["x"], "tools":{"a":1}}`, `{"temperature":0.50,"stop":["x"],"tools":{"a":1,"b":2},"top_p":1}`,
		`{"stop":["x"],"tools":{"b":2},"top_p":1}`, `{"stop":["x"],"tools":{"b":2},"top_p":1,"temperature":{}}`, `[1]`, `{"z":0}`,
	}
	all := []*lineage.Context{parent, child, grandchild, again, list, with(list, `{"z":0,"y":null}`)}
	for i, c := range all {
		require.JSONEq(t, want[i], settings(c))
	}
	require.Equal(t, want[0], settings(parent), "what is not merged keeps its bytes")
	info := contextInfoOf(t, grandchild)
	require.Equal(t, `{"temperature":null,"tools":{"a":null}}`, string(info.Overrides.JSON), "its own stay what they are")

	// The overrides in force stay the same when the contexts they come from are deleted one by one.
	for i := range 4 {
		require.NoError(t, all[i].Delete(bg))
		for k := i + 1; k < len(all); k++ {
			require.JSONEq(t, want[k], settings(all[k]), "after %d were deleted", i+1)
		}
	}
}

// feature: lineage/context
func TestContextOutlivesItsParent(t *testing.T) {
	s := newStore(t)
	parent := newContext(t, s, "one")
	child := fork(t, parent)
	require.NoError(t, setOverrides(parent, lineage.Overrides{Model: pointer("large")}))
	require.NoError(t, parent.Delete(bg))
	require.Equal(t, []string{"one"}, texts(t, child))
	o, err := child.Effective(bg)
	require.NoError(t, err)
	require.Equal(t, "large", *o.Model, "what was in force stays so")
	say(t, child, "two")
	require.Equal(t, []string{"one", "two"}, texts(t, fork(t, child)))
	require.NoError(t, setOverrides(child, lineage.Overrides{Model: pointer("small")}))
	require.NoError(t, setMetadata(child, []byte(`{"a": 1}`)))
	info, err := child.Info(bg)
	require.NoError(t, err)
	require.Equal(t, "small", *info.Overrides.Model)
	require.Equal(t, `{"a": 1}`, string(info.Metadata))
	_, err = child.Return(bg, lineage.Assistant("done"))
	require.ErrorIs(t, err, lineage.ErrNotFound)
	requireSound(t, s)
}

func TestForkOutlivesItsThread(t *testing.T) {
	s := newStore(t)
	thread, main := newThread(t, s)
	say(t, main, "one")
	other, err := s.CreateThread(bg, lineage.ThreadOptions{})
	require.NoError(t, err)
	child, err := main.Fork(bg, lineage.ForkOptions{Thread: other.ID()})
	require.NoError(t, err)
	require.NoError(t, thread.Delete(bg))
	require.Equal(t, []string{"one"}, texts(t, child))
	_, err = main.Info(bg)
	require.ErrorIs(t, err, lineage.ErrNotFound)
	_, err = thread.Branches(bg)
	require.ErrorIs(t, err, lineage.ErrNotFound)
}

func TestUpdatesKeepTheTip(t *testing.T) {
	c := newContext(t, newClockedStore(t), "one", "two")
	before, err := c.Info(bg)
	require.NoError(t, err)
	require.NoError(t, setMetadata(c, []byte("{}")))
	after, err := c.Info(bg)
	require.NoError(t, err)
	before.Metadata = []byte("{}")
	require.Equal(t, before, after)
}

func TestUpdatedAtCountsMessages(t *testing.T) {
	s := newClockedStore(t)
	thread, main := newThread(t, s)
	updated := func() time.Time {
		info, err := thread.Info(bg)
		require.NoError(t, err)
		return info.UpdatedAt
	}
	last := updated()
	later := func(what string) {
		t.Helper()
		now := updated()
		require.True(t, now.After(last), what)
		last = now
	}
	say(t, main, "one")
	later("a message")
	aside, err := aside(thread)
	require.NoError(t, err)
	later("a branch")
	c, err := s.Context(bg, aside.Context)
	require.NoError(t, err)
	say(t, c, "two")
	later("a message on another branch")
	require.NoError(t, thread.Update(bg, func(i *lineage.ThreadInfo) error { i.Title = "a title"; return nil }))
	later("a title")
	b, err := thread.Branch(bg, aside.Name)
	require.NoError(t, err)
	require.True(t, b.UpdatedAt.After(b.CreatedAt))
	require.True(t, b.UpdatedAt.Before(last))
}

// TestChangesHaveDistinctTimes changes a thread while the clock stands still.
func TestChangesHaveDistinctTimes(t *testing.T) {
	now := time.Date(2026, 1, 10, 0, 0, 0, 0, time.UTC)
	s, err := lineage.Open(bg, t.TempDir(), lineage.Options{Durability: lineage.Normal, Now: func() time.Time { return now }})
	require.NoError(t, err)
	defer s.Close()
	thread, _ := newThread(t, s)
	last := now
	for _, title := range []string{"a", "b", "c"} {
		require.NoError(t, thread.Update(bg, func(i *lineage.ThreadInfo) error { i.Title = title; return nil }))
		info, err := thread.Info(bg)
		require.NoError(t, err)
		require.True(t, info.UpdatedAt.After(last), "two states of the thread are the same")
		last = info.UpdatedAt
	}
}

func TestThreadUpdate(t *testing.T) {
	s := newStore(t)
	thread, err := s.CreateThread(bg, lineage.ThreadOptions{SourceID: "chat", UserID: "ada", Metadata: []byte(`{"a":1}`)})
	require.NoError(t, err)
	require.NoError(t, thread.Update(bg, func(i *lineage.ThreadInfo) error { i.Title = "a title"; return nil }))
	_, err = activeOf(t, thread).Extend(bg, lineage.User("one").WithID("q1"))
	require.NoError(t, err)
	thread, err = s.FindThread(bg, "chat")
	require.NoError(t, err)
	info, err := thread.Info(bg)
	require.NoError(t, err)
	require.Equal(t, []string{"chat", "ada", "a title", `{"a":1}`}, []string{info.SourceID, info.UserID, info.Title, string(info.Metadata)})

	require.NoError(t, thread.Delete(bg))
	_, err = s.FindThread(bg, "chat")
	require.ErrorIs(t, err, lineage.ErrNotFound)
	again, err := s.CreateThread(bg, lineage.ThreadOptions{SourceID: "chat"})
	require.NoError(t, err, "the id of what was deleted is free")
	require.Equal(t, []string{"main"}, branchNames(t, again))
	_, err = again.Find(bg, "q1")
	require.ErrorIs(t, err, lineage.ErrNotFound)
	_, err = activeOf(t, again).Extend(bg, lineage.User("another").WithID("q1"))
	require.NoError(t, err, "so are the ids of its messages")
}

func TestFindBySourceID(t *testing.T) {
	s := newStore(t)
	thread, main := newThread(t, s)
	_, err := main.Extend(bg, lineage.Together(lineage.User("one").WithID("q1"), lineage.User("two").WithID("q2")))
	require.NoError(t, err)
	e, err := thread.Find(bg, "q2")
	require.NoError(t, err)
	require.Equal(t, "two", e.Excerpt())

	_, other := newThread(t, s)
	_, err = other.Extend(bg, lineage.User("another").WithID("q1"))
	require.NoError(t, err, "ids are unique in a thread, not in the store")
	for range 2 {
		_, err = newContext(t, s).Extend(bg, lineage.User("no thread").WithID("q1"))
		require.NoError(t, err, "outside of threads they are unique nowhere")
	}
	subset, err := main.Fork(bg, lineage.ForkOptions{Sees: &lineage.Filter{}})
	require.NoError(t, err)
	require.Equal(t, []string{"one", "two"}, texts(t, subset))
	e, err = thread.Find(bg, "q1")
	require.NoError(t, err)
	require.Equal(t, "one", e.Excerpt(), "copies do not take the original's id")
}

// feature: lineage/context
func TestChildren(t *testing.T) {
	s := newStore(t)
	c := newContext(t, s, "one")
	a, b := fork(t, c), fork(t, c)
	fork(t, a)
	var ids []lineage.ContextID
	for _, child := range gathered(t, c.Children(bg)) {
		ids = append(ids, child.ID())
	}
	require.ElementsMatch(t, []lineage.ContextID{a.ID(), b.ID()}, ids)
}

// The overrides in force stay the same when the contexts they come from are deleted.
func TestOverridesOutliveTheirContext(t *testing.T) {
	s := newStore(t)
	prompt, model, own := "You count birds.", "large", "small"
	thread, err := s.CreateThread(bg, lineage.ThreadOptions{})
	require.NoError(t, err)
	main, err := thread.Active(bg)
	require.NoError(t, err)
	require.NoError(t, setOverrides(main, lineage.Overrides{SystemPrompt: &prompt}))
	_, err = main.Extend(bg, lineage.User("Herons?"))
	require.NoError(t, err)
	branch, err := thread.CreateBranch(bg, "aside", lineage.BranchOptions{})
	require.NoError(t, err)
	require.NoError(t, setOverrides(branch, lineage.Overrides{Model: &model}))
	middle, err := branch.Fork(bg, lineage.ForkOptions{})
	require.NoError(t, err)
	child, err := middle.Fork(bg, lineage.ForkOptions{})
	require.NoError(t, err)
	stubborn, err := middle.Fork(bg, lineage.ForkOptions{Overrides: lineage.Overrides{Model: &own}})
	require.NoError(t, err)
	elsewhere, err := s.CreateThread(bg, lineage.ThreadOptions{})
	require.NoError(t, err)
	far, err := main.Fork(bg, lineage.ForkOptions{Thread: elsewhere.ID()})
	require.NoError(t, err)

	requireForce := func(c *lineage.Context, prompt, model *string) {
		t.Helper()
		o, err := c.Effective(bg)
		require.NoError(t, err)
		require.Equal(t, lineage.Overrides{SystemPrompt: prompt, Model: model}, o)
	}
	check := func() {
		t.Helper()
		requireForce(child, &prompt, &model)
		requireForce(stubborn, &prompt, &own)
		requireForce(far, &prompt, nil)
	}
	check()
	at, err := child.Tip(bg)
	require.NoError(t, err)
	require.NoError(t, middle.Delete(bg))
	check()
	now, err := child.Tip(bg)
	require.NoError(t, err)
	require.Equal(t, at, now)
	require.NoError(t, thread.DeleteBranch(bg, "aside"))
	check()
	require.NoError(t, thread.Delete(bg))
	requireForce(far, &prompt, nil)
	require.ErrorIs(t, thread.Delete(bg), lineage.ErrNotFound)
	require.ErrorIs(t, middle.Delete(bg), lineage.ErrNotFound)
}

// A fork made during the deletion of its parent keeps the overrides in force.
func TestForkedWhileDeleted(t *testing.T) {
	for name, remove := range map[string]func(*lineage.Thread, *lineage.Context) error{
		"context": func(_ *lineage.Thread, c *lineage.Context) error {
			aside, err := c.Fork(bg, lineage.ForkOptions{})
			if err != nil {
				return err
			}
			return aside.Delete(bg)
		},
		"branch": func(thread *lineage.Thread, _ *lineage.Context) error { return thread.DeleteBranch(bg, "aside") },
		"thread": func(thread *lineage.Thread, _ *lineage.Context) error { return thread.Delete(bg) },
	} {
		t.Run(name, func(t *testing.T) {
			below := open(t, t.TempDir())
			engine := &interrupted{Engine: write.Of(below).Engine(), at: []structure.Kind{structure.KindDeletion}}
			s := lineage.New(engine)
			thread, c := newThread(t, s)
			say(t, c, "one")
			require.NoError(t, setOverrides(c, lineage.Overrides{Model: pointer("large")}))
			_, err := thread.CreateBranch(bg, "aside", lineage.BranchOptions{From: c})
			require.NoError(t, err)
			elsewhere, _ := newThread(t, s)
			var changed []*lineage.Context
			engine.do = func() {
				for parent, err := range thread.Contexts(bg) {
					require.NoError(t, err)
					fork, err := parent.Fork(bg, lineage.ForkOptions{Thread: elsewhere.ID()})
					require.NoError(t, err)
					changed = append(changed, fork)
				}
			}
			require.NoError(t, remove(thread, c))
			require.Nil(t, engine.do)
			require.NotEmpty(t, changed)
			for _, fork := range changed {
				o, err := fork.Effective(bg)
				require.NoError(t, err)
				require.NotNil(t, o.Model)
				require.Equal(t, "large", *o.Model)
			}
			requireSound(t, below)
		})
	}
}

// A fork of a fork, both made during the deletion of a thread, keeps the overrides in force.
func TestForkedFromForkWhileDeleted(t *testing.T) {
	below := open(t, t.TempDir())
	engine := &interrupted{Engine: write.Of(below).Engine(), at: []structure.Kind{structure.KindDeletion}}
	s := lineage.New(engine)
	thread, c := newThread(t, s)
	require.NoError(t, setOverrides(c, lineage.Overrides{Model: pointer("large")}))
	elsewhere, _ := newThread(t, s)
	first, err := c.Fork(bg, lineage.ForkOptions{Thread: elsewhere.ID()})
	require.NoError(t, err)
	var second *lineage.Context
	engine.do = func() {
		inside, err := c.Fork(bg, lineage.ForkOptions{})
		require.NoError(t, err)
		second, err = inside.Fork(bg, lineage.ForkOptions{Thread: elsewhere.ID()})
		require.NoError(t, err)
	}
	require.NoError(t, thread.Delete(bg))
	for _, fork := range []*lineage.Context{first, second} {
		o, err := fork.Effective(bg)
		require.NoError(t, err)
		require.NotNil(t, o.Model)
		require.Equal(t, "large", *o.Model)
	}
}

// If deleting a branch is refused, its forks do not change either.
func TestRefusedDeletionChangesNothing(t *testing.T) {
	s := newStore(t)
	thread, c := newThread(t, s)
	require.NoError(t, setOverrides(c, lineage.Overrides{Model: pointer("large")}))
	require.NoError(t, renameBranch(thread, lineage.MainBranch, "only"))
	elsewhere, _ := newThread(t, s)
	fork, err := c.Fork(bg, lineage.ForkOptions{Thread: elsewhere.ID()})
	require.NoError(t, err)
	require.ErrorIs(t, thread.DeleteBranch(bg, "only"), lineage.ErrProtected)
	require.ErrorIs(t, thread.DeleteBranch(bg, "none"), lineage.ErrNotFound)
	require.ErrorIs(t, c.Delete(bg), lineage.ErrConflict)
	require.NoError(t, setOverrides(c, lineage.Overrides{Model: pointer("small")}))
	o, err := fork.Effective(bg)
	require.NoError(t, err)
	require.Equal(t, "small", *o.Model)
}

// An id of the caller belongs to one context, whoever creates it first.
func TestContextsWithSourceIDs(t *testing.T) {
	s := newStore(t)
	errs := make(chan error, 8)
	for range cap(errs) {
		go func() {
			_, err := s.NewContext(bg, lineage.ContextOptions{SourceID: "file"})
			errs <- err
		}()
	}
	created := 0
	for range cap(errs) {
		if err := <-errs; err == nil {
			created++
		} else {
			require.ErrorIs(t, err, lineage.ErrExists)
		}
	}
	require.Equal(t, 1, created)
	c, err := s.Context(bg, lineage.SourceBranch("file"))
	require.NoError(t, err)
	require.ErrorIs(t, s.Update(bg, func(ctx context.Context, tx *lineage.Tx) error {
		_, err := tx.NewContext(ctx, lineage.ContextOptions{SourceID: "file"})
		return err
	}), lineage.ErrExists)
	require.NoError(t, c.Delete(bg))
	require.NoError(t, s.Update(bg, func(ctx context.Context, tx *lineage.Tx) error {
		_, err := tx.NewContext(ctx, lineage.ContextOptions{SourceID: "file"})
		return err
	}))
	_, err = s.Context(bg, lineage.SourceBranch("file"))
	require.NoError(t, err)
}
