package structure_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/structure"
)

// versionName derives a name from another, and returns the number of calls.
func versionName(t require.TestingT, current string, names map[string]bool) (name string, asked int) {
	name, err := structure.VersionName(current, func(prefix string, limit int) (found []string, err error) {
		for name := range names {
			if strings.HasPrefix(name, prefix) && len(found) < limit {
				found = append(found, name)
			}
		}
		return found, nil
	}, func(some []string) (int, error) {
		asked++
		require.LessOrEqual(t, len(some), 24)
		for i, name := range some {
			if !names[name] {
				return i, nil
			}
		}
		return len(some), nil
	})
	require.NoError(t, err)
	return name, asked
}

func TestVersionName(t *testing.T) {
	for _, c := range []struct{ current, want, names string }{
		{"main", "main-v2", "main"},
		{"main", "main-v4", "main main-v2 main-v2-v2"},
		{"main", "main-v6", "main main-v4 main-v5"},
		{"main-v3", "main-v3-v2", "main main-v3"},
		{"main" + strings.Repeat("-v2", 80), "main" + strings.Repeat("-v2", 57) + "-v1", "x"},
	} {
		names := make(map[string]bool)
		for _, name := range strings.Fields(c.names) {
			names[name] = true
		}
		got, _ := versionName(t, c.current, names)
		require.Equal(t, c.want, got, c.names)
	}
	failed := errors.New("failed")
	_, err := structure.VersionName("main", func(string, int) ([]string, error) { return nil, failed }, nil)
	require.Equal(t, failed, err)
	_, err = structure.VersionName("main", func(string, int) ([]string, error) { return nil, nil }, func([]string) (int, error) { return 0, failed })
	require.Equal(t, failed, err)
}

// A derived name is free and short, its number follows a taken one or the count, and
// deriving it takes few calls.
func TestVersionNameIsFree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		current := rapid.OneOf(rapid.SampledFrom([]string{"main", "main-v2", "-v", "v", "-v-v"}), rapid.StringN(1, 300, 600)).Draw(t, "current")
		names := map[string]bool{current: true}
		stem := structure.VersionStem(current)
		for n := range rapid.IntRange(0, 3000).Draw(t, "versions") {
			names[fmt.Sprintf("%s-v%d", stem, n+2)] = true
		}
		for _, n := range rapid.SliceOfN(rapid.IntRange(0, 3000), 0, 50).Draw(t, "holes") {
			delete(names, fmt.Sprintf("%s-v%d", stem, n))
		}
		for range 20 {
			got, asked := versionName(t, current, names)
			require.NotContains(t, names, got)
			require.LessOrEqual(t, len(got), 200)
			require.LessOrEqual(t, asked, 6)
			digits, ok := strings.CutPrefix(got, structure.VersionStem(current)+"-v")
			require.True(t, ok)
			number, err := strconv.Atoi(digits)
			require.NoError(t, err)
			counted := 0
			for name := range names {
				if s := structure.VersionStem(current); name == s || strings.HasPrefix(name, s+"-v") {
					counted++
				}
			}
			if first := min(counted, structure.MostVersionsCounted) + 1; number != first {
				require.Greater(t, number, first)
				require.True(t, names[fmt.Sprintf("%s-v%d", structure.VersionStem(current), number-1)])
			}
			names[got] = true
			if rapid.Bool().Draw(t, "continue from it") {
				current = got
			}
		}
	})
}

func TestVersionNamesInARow(t *testing.T) {
	var made []string
	names := map[string]bool{"main": true}
	for range 5 * structure.MostVersionsCounted {
		name, _ := versionName(t, "main", names)
		names[name] = true
		made = append(made, name)
	}
	require.Equal(t, "main-v2", made[0])
	require.Equal(t, fmt.Sprintf("main-v%d", len(made)+1), made[len(made)-1])
}
