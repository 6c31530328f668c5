package summarize_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/summarize"
)

func TestSummaryOfAContext(t *testing.T) {
	ctx := context.Background()
	s, err := lineage.Open(ctx, t.TempDir(), lineage.Options{Durability: lineage.Normal})
	require.NoError(t, err)
	defer s.Close()
	c, err := s.NewContext(ctx, lineage.ContextOptions{})
	require.NoError(t, err)
	_, err = c.Extend(ctx, lineage.User(" "))
	require.NoError(t, err)

	_, err = c.Summarize(ctx, summarize.Extractive{}, lineage.SummarizeOptions{})
	require.ErrorIs(t, err, summarize.ErrNoText)

	_, err = c.Extend(ctx, lineage.User("The nightly export fails since Tuesday."))
	require.NoError(t, err)
	info, err := c.Summarize(ctx, summarize.Extractive{}, lineage.SummarizeOptions{})
	require.NoError(t, err)
	require.Equal(t, "user: The nightly export fails since Tuesday.", info.Text)
	require.Equal(t, "extractive", info.Model)
	require.Equal(t, []uint64{1, 2}, []uint64{info.First, info.Last})
}
