package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCounts(t *testing.T) {
	for s, want := range map[string]int{"0": 0, "7": 7, "10k": 10_000, "10M": 10_000_000} {
		n, err := parseCount(s)
		require.NoError(t, err)
		require.Equal(t, want, n)
	}
	for _, s := range []string{"", "k", "-1", "1.5M", "10m", "1kk", "99999999999999999999", " 1"} {
		_, err := parseCount(s)
		require.ErrorContains(t, err, "not a number", s)
	}
	var all []int
	f := countsFlag{&all}
	require.NoError(t, f.Set("10,1k"))
	require.NoError(t, f.Set("1M"))
	require.Equal(t, []int{10, 1_000, 1_000_000}, all)
	require.Equal(t, "10,1000,1000000", f.String())
	require.Error(t, f.Set("10,,20"))
}
