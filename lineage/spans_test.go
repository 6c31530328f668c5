package lineage_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/lineagetest"
)

// Spans returns what Span returns for each, in the order in which they are asked for.
func TestSpans(t *testing.T) {
	s := lineagetest.New(t, lineage.Options{})
	c, err := s.NewContext(bg, lineage.ContextOptions{})
	require.NoError(t, err)
	var all []lineage.SpanRef
	for i := range 20 {
		item := lineage.User(fmt.Sprint("message ", i))
		item.Metadata = fmt.Appendf(nil, `{"n":%d,"long":"%0200d"}`, i, i)
		refs, err := c.Extend(bg, item)
		require.NoError(t, err)
		all = append(all, refs...)
	}
	fork, err := c.Fork(bg, lineage.ForkOptions{})
	require.NoError(t, err)
	refs, err := fork.Extend(bg, lineage.Assistant("beside"))
	require.NoError(t, err)
	asked := append(slices.Clone(refs), all...)
	slices.Reverse(asked)
	asked = append(asked, all[3], all[3])
	got, err := s.Spans(bg, asked)
	require.NoError(t, err)
	require.Len(t, got, len(asked))
	for i, ref := range asked {
		want, err := s.Span(bg, ref)
		require.NoError(t, err)
		require.Len(t, got[i], len(want))
		for k := range want {
			require.Equal(t, want[k].Span, got[i][k].Span)
			require.Equal(t, want[k].Content, got[i][k].Content)
			require.Equal(t, string(want[k].Body), string(got[i][k].Body))
			require.Equal(t, string(want[k].Metadata), string(got[i][k].Metadata))
		}
	}
	none, err := s.Spans(bg, nil)
	require.NoError(t, err)
	require.Empty(t, none)
	_, err = s.Spans(bg, []lineage.SpanRef{all[0], {Run: all[0].Run, Seq: 1_000}})
	require.ErrorIs(t, err, lineage.ErrNotFound)
}
