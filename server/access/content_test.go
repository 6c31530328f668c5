package access_test

import (
	"context"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/server/access"
	"github.com/lineage-store/lineage/structure"
)

// listed is a view that calls a function after it has listed the uses of a content.
type listed struct {
	backend.View
	then func()
}

func (v listed) Where(ctx context.Context, id content.ID) iter.Seq2[structure.UsageID, error] {
	return func(yield func(structure.UsageID, error) bool) {
		var uses []structure.UsageID
		for use, err := range v.View.Where(ctx, id) {
			if err != nil {
				yield(use, err)
				return
			}
			uses = append(uses, use)
		}
		v.then()
		for _, use := range uses {
			if !yield(use, nil) {
				return
			}
		}
	}
}

// A run that is collected after it was found is in no scope, and hides no other.
func TestRunsThatAreCollectedMeanwhile(t *testing.T) {
	ctx := t.Context()
	store, err := lineage.OpenMemory(ctx, lineage.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	say := func(user string) (*lineage.Thread, structure.RunID) {
		thread, err := store.CreateThread(ctx, lineage.ThreadOptions{UserID: user})
		require.NoError(t, err)
		main, err := thread.Active(ctx)
		require.NoError(t, err)
		said, err := main.Extend(ctx, lineage.User("the word"))
		require.NoError(t, err)
		return thread, said[0].Run
	}
	gone, first := say("ada")
	_, second := say("bob")
	_, third := say("ada")
	ada, carl := &access.Scope{Users: []string{"ada"}}, &access.Scope{Users: []string{"carl"}}
	word := content.Sum([]byte("the word"))
	collect := func() {
		require.NoError(t, gone.Delete(ctx))
		report, err := store.Collect(ctx, lineage.CollectOptions{KeepReflog: -1, KeepUnused: -1})
		require.NoError(t, err)
		require.NotZero(t, report.Records)
	}
	has, err := ada.HasContent(ctx, listed{store.View(), collect}, word, lineage.ThreadID{})
	require.NoError(t, err)
	require.True(t, has)
	runs, err := ada.HasRuns(ctx, store.View(), []structure.RunID{first, second, third, {}})
	require.NoError(t, err)
	require.Equal(t, map[structure.RunID]bool{first: false, second: false, third: true, {}: false}, runs)
	gone, _ = say("ada")
	has, err = carl.HasContent(ctx, listed{store.View(), collect}, word, lineage.ThreadID{})
	require.NoError(t, err)
	require.False(t, has)
}
