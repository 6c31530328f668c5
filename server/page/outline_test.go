package page

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// While the first messages only are known, no prompt is taken for the one before a later message.
func TestPromptIn(t *testing.T) {
	signs := []sign{signPrompt, signAnswer, signPrompt, signAnswer}
	for at, want := range []uint64{0, 0, 1, 1, 3, 3, 0, 0} {
		require.Equal(t, want, promptIn(signs, uint64(at), true), at)
	}
	for at, want := range []uint64{1, 3, 3, 0, 0, 0} {
		require.Equal(t, want, promptIn(signs, uint64(at), false), at)
	}
}
