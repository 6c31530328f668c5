package lineage_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
)

// A fork and an extend allocate what they return and what caches keep. Later work of the index
// counts a little too.
func TestChangesAllocateLittle(t *testing.T) {
	s, err := lineage.Open(bg, t.TempDir(), lineage.Options{Durability: lineage.Normal})
	require.NoError(t, err)
	defer s.Close()
	c := newContext(t, s)
	_, err = c.Extend(bg, lineage.User("first"))
	require.NoError(t, err)
	const runs = 50 // too few entries to start a fold
	most := 6.0
	if underRace {
		most = 30
	}
	// Other work of the process is counted too, so the smallest of several measurements counts.
	const tries = 5
	least := func(change func()) float64 {
		allocs := make([]float64, tries)
		for i := range allocs {
			_, err := s.Stats(bg) // brings the index up to date
			require.NoError(t, err)
			allocs[i] = testing.AllocsPerRun(runs, change)
		}
		return slices.Min(allocs)
	}
	require.LessOrEqual(t, least(func() {
		if _, err := c.Fork(bg, lineage.ForkOptions{}); err != nil {
			t.Fatal(err)
		}
	}), most)
	items := make([]lineage.Item, tries*(runs+1))
	for i := range items {
		items[i] = lineage.User(fmt.Sprint("message ", i))
	}
	require.LessOrEqual(t, least(func() {
		if _, err := c.Extend(bg, items[0]); err != nil {
			t.Fatal(err)
		}
		items = items[1:]
	}), most)
}

// A caller may change the ContextInfo it gets, although engines share the underlying data.
func TestContextInfoIsACopy(t *testing.T) {
	s := newStore(t)
	prompt := "be brief"
	c, err := s.NewContext(bg, lineage.ContextOptions{
		Overrides: lineage.Overrides{SystemPrompt: &prompt, JSON: []byte(`{"a":1}`)}, Metadata: []byte(`{"b":2}`),
	})
	require.NoError(t, err)
	for range 2 {
		info, err := c.Info(bg)
		require.NoError(t, err)
		require.Equal(t, "be brief", *info.Overrides.SystemPrompt)
		require.Equal(t, `{"a":1}`, string(info.Overrides.JSON))
		require.Equal(t, `{"b":2}`, string(info.Metadata))
		*info.Overrides.SystemPrompt = "spoiled"
		clear(info.Overrides.JSON)
		clear(info.Metadata)
		o, err := c.Effective(bg)
		require.NoError(t, err)
		require.Equal(t, "be brief", *o.SystemPrompt)
		*o.SystemPrompt = "spoiled"
		clear(o.JSON)
	}
}
