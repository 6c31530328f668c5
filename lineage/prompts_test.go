package lineage_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/lineagetest"
)

// The prompts of forks of forks are those that the contexts themselves say, in any order.
func TestPrompts(t *testing.T) {
	ctx := t.Context()
	s := lineagetest.New(t, lineage.Options{})
	prompts := []string{"first", "", "second"}
	options := []lineage.Overrides{{}, {SystemPrompt: &prompts[0]}, {}, {SystemPrompt: &prompts[1]}, {}, {SystemPrompt: &prompts[2]}}
	root, err := s.NewContext(ctx, lineage.ContextOptions{})
	require.NoError(t, err)
	all := []*lineage.Context{root}
	for _, o := range options {
		for _, from := range all {
			fork, err := from.Fork(ctx, lineage.ForkOptions{Overrides: o})
			require.NoError(t, err)
			all = append(all, fork)
		}
	}
	require.NoError(t, all[2].Delete(ctx)) // others inherit from what is left of it
	all = append(all[:2], all[3:]...)
	snapshot, err := s.View().Snapshot(ctx)
	require.NoError(t, err)
	defer snapshot.Close()
	forwards, backwards := make(backend.Prompts), make(backend.Prompts)
	for i := range all {
		for known, c := range map[*backend.Prompts]*lineage.Context{&forwards: all[i], &backwards: all[len(all)-1-i]} {
			effective, err := c.Effective(ctx)
			require.NoError(t, err)
			want := ""
			if effective.SystemPrompt != nil {
				want = *effective.SystemPrompt
			}
			got, err := known.Of(ctx, snapshot, c.ID())
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
	}
	_, err = forwards.Of(ctx, snapshot, all[0].ID())
	require.NoError(t, err)
}
