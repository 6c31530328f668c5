package read

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Guessing continues while it is right, and stops if several runs grow in turns.
func TestGuess(t *testing.T) {
	var alone guess
	right := 0
	for range 100 {
		if alone.worth() {
			alone.was(true)
			right++
		} else {
			alone.saw(true)
		}
	}
	require.Equal(t, 99, right)

	var turns guess
	wrong := 0
	for i := range 10_000 {
		if turns.worth() {
			turns.was(false)
			wrong++
		} else {
			turns.saw(i%50 != 0)
		}
	}
	require.Less(t, wrong, 10)
}
