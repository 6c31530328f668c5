package backendtest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/structure"
)

// testRecent reads from Recent, which may be an earlier state, but must be one
// that existed.
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
	require.NoError(t, s.Close())
	_, err := s.Recent().Head(background)
	require.Error(t, err)
	s.start()
}
