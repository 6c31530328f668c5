package backendtest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// testRecent reads from Recent, which may be an earlier state, but must be one that existed.
func testRecent(t *testing.T, c Config) {
	s := newStore(t, c)
	s.apply(thread("t"), run("r", structure.SpanRef{}))
	for i := range 4 {
		s.apply(append(told("r", uint64(i+1), "said"), view(fmt.Sprint("v", i), "t", at("r", uint64(i+1))))...)
		recent := s.Recent()
		head, err := recent.Head(background)
		require.NoError(t, err)
		require.LessOrEqual(t, head.Number, s.head())
		require.NoError(t, firstError(s.Feed(background, head)))
	}
	var tips []structure.SpanRef
	from := at("r", 4)
	s.apply(view("moves", "t", from))
	for i := range uint64(4) {
		tips = append(tips, from)
		to := at("r", 5+i)
		records := append(told("r", to.Seq, "said"), move("moves", to))
		_, err := s.Apply(background, &structure.Commit{Records: records}, backend.Options{Tips: []backend.Expect{{Context: id[structure.ContextID]("moves"), Tip: from}}})
		require.NoError(t, err)
		got, err := s.Recent().Context(background, id[structure.ContextID]("moves"))
		require.NoError(t, err)
		require.Contains(t, append(tips, to), got.Tip)
		require.Equal(t, view("moves", "t", at("r", 4)).Base, got.Base)
		from = to
	}
	require.NoError(t, s.Close())
	_, err := s.Recent().Head(background)
	require.Error(t, err)
	s.start()
}
