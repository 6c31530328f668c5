package structure_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/structure"
	"github.com/lineage-store/lineage/structure/structuretest"
)

// An owned record equals the decoded one, and shares no memory with the original,
// which is overwritten to show that.
func TestOwnedRecordEqualsDecodedRecord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := structuretest.PlainRecords().Draw(t, "record")
		b, err := structure.MarshalRecord(r)
		require.NoError(t, err)
		own, err := structure.UnmarshalRecord(r.Kind(), b)
		require.NoError(t, err)
		require.True(t, structure.Equal(r, own))
		structure.Own(own)
		want, err := structure.UnmarshalRecord(r.Kind(), append([]byte{}, b...))
		require.NoError(t, err)
		clear(b)
		require.Equal(t, want, own)
		require.True(t, structure.Equal(r, own))
	})
}

// Records are equal if they have the same binary form.
func TestEqualRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := structuretest.PlainRecords().Draw(t, "a"), structuretest.PlainRecords().Draw(t, "b")
		x, err := structure.MarshalRecord(a)
		require.NoError(t, err)
		y, err := structure.MarshalRecord(b)
		require.NoError(t, err)
		require.Equal(t, a.Kind() == b.Kind() && string(x) == string(y), structure.Equal(a, b))
	})
	require.False(t, structure.Equal(&structure.Cut{}, nil))
	require.False(t, structure.Equal(nil, &structure.Cut{}))
	require.False(t, structure.Equal(&structure.Tip{}, &structure.Tip{}), "not plain")
}
