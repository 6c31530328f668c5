package bundle_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/bundle"
)

// inherits requires the overrides in force of a context.
func inherits(t *testing.T, s *lineage.Store, id lineage.ContextID, model, prompt string) {
	t.Helper()
	c, err := s.Context(context.Background(), id)
	require.NoError(t, err)
	o, err := c.Effective(context.Background())
	require.NoError(t, err)
	require.Equal(t, lineage.Overrides{SystemPrompt: &prompt, Model: &model}, o)
}

// pass imports a bundle of one store into another, twice: the second import changes nothing.
func pass(t *testing.T, from, to *lineage.Store, o bundle.WriteOptions) bundle.ImportReport {
	t.Helper()
	ctx := context.Background()
	var b bytes.Buffer
	_, err := bundle.Write(ctx, from, &b, o)
	require.NoError(t, err)
	report, err := bundle.Import(ctx, to, bytes.NewReader(b.Bytes()), bundle.ImportOptions{})
	require.NoError(t, err)
	before := stats(t, to)
	_, err = bundle.Import(ctx, to, bytes.NewReader(b.Bytes()), bundle.ImportOptions{})
	require.NoError(t, err)
	require.Equal(t, before, stats(t, to), "the second import changes nothing")
	return report
}

func stats(t *testing.T, s *lineage.Store) backend.Stats {
	t.Helper()
	got, err := s.Stats(context.Background())
	require.NoError(t, err)
	return got.Counts()
}

// line creates a context with a prompt, one below it with a model, and a fork of that.
func line(t *testing.T, s *lineage.Store) (root, middle, fork *lineage.Context) {
	t.Helper()
	ctx := context.Background()
	prompt, model := "You count birds.", "large"
	root, err := s.NewContext(ctx, lineage.ContextOptions{Overrides: lineage.Overrides{SystemPrompt: &prompt}})
	require.NoError(t, err)
	middle, err = root.Fork(ctx, lineage.ForkOptions{Overrides: lineage.Overrides{Model: &model}})
	require.NoError(t, err)
	fork, err = middle.Fork(ctx, lineage.ForkOptions{})
	require.NoError(t, err)
	return root, middle, fork
}

// A context keeps the overrides in force, whether those above it were deleted or not chosen.
func TestRemnantsComeAlong(t *testing.T) {
	ctx := context.Background()
	for name, deleted := range map[string]bool{"deleted": true, "not chosen": false} {
		t.Run(name, func(t *testing.T) {
			a, b := newStore(t), newStore(t)
			root, middle, fork := line(t, a)
			more, err := middle.Fork(ctx, lineage.ForkOptions{})
			require.NoError(t, err)
			if deleted {
				require.NoError(t, root.Delete(ctx))
				require.NoError(t, middle.Delete(ctx))
			}
			pass(t, a, b, bundle.WriteOptions{Contexts: []lineage.ContextID{fork.ID()}})
			inherits(t, b, fork.ID(), "large", "You count birds.")
			_, err = b.Context(ctx, middle.ID())
			require.ErrorIs(t, err, lineage.ErrNotFound)
			pass(t, a, b, bundle.WriteOptions{})
			inherits(t, b, more.ID(), "large", "You count birds.")
			require.Equal(t, stats(t, a).Contexts, stats(t, b).Contexts)
			if !deleted { // what was above only is there now, and is what the fork inherits from
				there, err := b.Context(ctx, middle.ID())
				require.NoError(t, err)
				require.NoError(t, there.Update(ctx, func(i *lineage.ContextInfo) error { i.Overrides.Model = new("small"); return nil }))
				inherits(t, b, fork.ID(), "small", "You count birds.")
			}
		})
	}
}

// Where two stores have deleted a context as it was at different times, each fork keeps the overrides
// that it had.
func TestRemnantsThatDiffer(t *testing.T) {
	ctx := context.Background()
	a, b := newStore(t), newStore(t)
	root, middle, fork := line(t, a)
	pass(t, a, b, bundle.WriteOptions{})
	require.NoError(t, middle.Update(ctx, func(i *lineage.ContextInfo) error { i.Overrides.Model = new("small"); return nil }))
	late, err := middle.Fork(ctx, lineage.ForkOptions{})
	require.NoError(t, err)
	last, err := late.Fork(ctx, lineage.ForkOptions{})
	require.NoError(t, err)
	require.NoError(t, middle.Delete(ctx))
	require.NoError(t, late.Delete(ctx))

	there, err := b.Context(ctx, middle.ID())
	require.NoError(t, err)
	require.NoError(t, there.Delete(ctx))
	report := pass(t, a, b, bundle.WriteOptions{})
	require.Empty(t, report.Conflicts)
	inherits(t, b, fork.ID(), "large", "You count birds.")
	inherits(t, b, last.ID(), "small", "You count birds.")

	// A context that was deleted here comes back in its place only if it is what its forks know.
	for _, model := range []string{"large", "tiny"} {
		c, d := newStore(t), newStore(t)
		_, middle, fork := line(t, c)
		pass(t, c, d, bundle.WriteOptions{})
		there, err := d.Context(ctx, middle.ID())
		require.NoError(t, err)
		require.NoError(t, there.Delete(ctx))
		require.NoError(t, middle.Update(ctx, func(i *lineage.ContextInfo) error { i.Overrides.Model = &model; return nil }))
		report := pass(t, c, d, bundle.WriteOptions{})
		inherits(t, d, fork.ID(), "large", "You count birds.")
		back := middle.ID()
		if model != "large" {
			require.Len(t, report.Conflicts, 1)
			back = report.Conflicts[0].Theirs
		}
		inherits(t, d, back, model, "You count birds.")
	}
	_, err = root.Info(ctx)
	require.NoError(t, err)
}
