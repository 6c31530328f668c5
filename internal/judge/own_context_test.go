package judge

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/structure"
	"github.com/lineage-store/lineage/structure/structuretest"
)

// The copy of a context that is remembered is what reading its record returns.
func TestOwnContextIsWhatIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := structuretest.Contexts().Draw(t, "context")
		b, err := structure.MarshalRecord(c)
		require.NoError(t, err)
		read, err := structure.UnmarshalRecord(structure.KindContext, b)
		require.NoError(t, err)
		var own structure.Context
		ownContext(&own, c)
		require.Equal(t, *read.(*structure.Context), own)
	})
}
