package bench

import (
	"math"
	"slices"
)

// quantile returns a quantile of values, interpolated between neighbours. It sorts values.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	at := q * float64(len(values)-1)
	low := int(at)
	if low+1 >= len(values) {
		return values[len(values)-1]
	}
	return values[low] + (at-float64(low))*(values[low+1]-values[low])
}

func median(values []float64) float64 { return quantile(slices.Clone(values), 0.5) }

// noisyAt is the distance of the quartiles, relative to the median, from which a row is noisy.
const noisyAt = 0.5

// exponent fits cost = a × size^e with least squares of logarithms and returns e: 0 for a constant
// cost, 1 for a linear one.
func exponent(sizes, costs []float64) (float64, bool) {
	if len(sizes) < 2 {
		return 0, false
	}
	var sx, sy, sxx, sxy float64
	n := float64(len(sizes))
	for i := range sizes {
		if sizes[i] <= 0 || costs[i] <= 0 {
			return 0, false
		}
		x, y := math.Log(sizes[i]), math.Log(costs[i])
		sx, sy, sxx, sxy = sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	d := n*sxx - sx*sx
	if d == 0 {
		return 0, false
	}
	return (n*sxy - sx*sy) / d, true
}
