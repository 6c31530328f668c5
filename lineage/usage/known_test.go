package usage

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

func keyWith(n uint64) *answerKey {
	var k answerKey
	binary.BigEndian.PutUint64(k[:], n)
	return &k
}

// What is lacking is known only in an update that began with empty data, while nobody else writes, and up to a limit.
func TestKnownKeys(t *testing.T) {
	var k knownKeys
	k.begin(false, true)
	k.add(keyWith(1))
	require.False(t, k.lacks(keyWith(2)), "there was data")
	k.begin(true, false)
	require.False(t, k.lacks(keyWith(2)), "earlier windows were not seen")
	k.begin(true, true)
	require.True(t, k.lacks(keyWith(1)))
	k.add(keyWith(1))
	k.begin(true, false)
	require.False(t, k.lacks(keyWith(1)))
	require.True(t, k.lacks(keyWith(2)))
	k.begin(false, false)
	require.False(t, k.lacks(keyWith(2)), "another process may have written")
	k.begin(true, true)
	for i := range uint64(mostKnown + 1) {
		require.True(t, k.lacks(keyWith(i)))
		k.add(keyWith(i))
	}
	require.False(t, k.lacks(keyWith(1<<62)))
	require.Empty(t, k.keys)
}
