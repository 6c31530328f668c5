package difference

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A difference has the lines of both texts in order, and lines that both have where they agree.
//
// feature: lineage/document-diff
func TestDiffLines(t *testing.T) {
	require.Equal(t, []string{" a", "-b", "+B", " c", "+d"}, Lines([]string{"a", "b", "c"}, []string{"a", "B", "c", "d"}))
	require.Equal(t, []string{"-a"}, Lines([]string{"a"}, nil))
	require.Empty(t, Lines(nil, nil))
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "", "-d"}), 0, 12)
		from, to := lines.Draw(t, "from"), lines.Draw(t, "to")
		old, current := []string{}, []string{}
		for _, line := range Lines(from, to) {
			if line[0] != '+' {
				old = append(old, line[1:])
			}
			if line[0] != '-' {
				current = append(current, line[1:])
			}
		}
		require.Equal(t, from, old)
		require.Equal(t, to, current)
	})
	same := strings.Split(strings.Repeat("same\n", 20_000), "\n")
	require.Equal(t, []string{"-x", "+y"}, Lines(append(same, "x"), append(same, "y"))[len(same):])
}

// Texts without common lines are compared in bounded time and memory.
func TestDiffOfLargeTexts(t *testing.T) {
	many := func(of string) (lines []string) {
		for i := range 200_000 {
			lines = append(lines, fmt.Sprint(of, i))
		}
		return lines
	}
	require.Len(t, Lines(many("a"), many("b")), 400_000)
}
