package bench

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// Labels do not overlap, also if adding and subtracting the height has rounding errors.
func TestLabelsAreApart(t *testing.T) {
	choose := rand.New(rand.NewPCG(1, 2))
	odd := 0
	for range 1_000 {
		var taken []float64
		for range 9 {
			y := apart(50+choose.Float64()*200, taken)
			for _, other := range taken {
				require.Greater(t, math.Abs(y-other), labelHeight-0.01)
				if other+labelHeight-other < labelHeight {
					odd++
				}
			}
			taken = append(taken, y)
		}
	}
	require.Positive(t, odd)
}
