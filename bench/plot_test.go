package bench

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// Labels find a place below each other, also where adding the height to another and
// taking it away again does not give the height.
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
