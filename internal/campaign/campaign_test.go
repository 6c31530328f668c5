package campaign

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRounds(t *testing.T) {
	for _, tt := range []struct {
		ordinary, length int
		short            bool
		want             int
	}{
		{25, 0, false, 25},
		{25, 0, true, 5},
		{3, 0, true, 1},
		{25, 3000, false, 3000},
		{25, 3000, true, 3000},
		{25, 1, false, 25},
	} {
		require.Equal(t, tt.want, rounds(tt.ordinary, tt.length, tt.short), "%+v", tt)
	}
}

func TestSample(t *testing.T) {
	all := Sample(3, 10)
	require.Equal(t, []int{1, 2, 3}, all)
	if Runs() || testing.Short() {
		return
	}
	drawn := map[int]bool{}
	for range 2000 {
		some := Sample(50, 10)
		require.Len(t, some, 10)
		for _, n := range some {
			drawn[n] = true
		}
	}
	require.Len(t, drawn, 50, "not all numbers are drawn")
}

// Every file is damaged, each damage is one byte of a copy, and the original does not change.
func TestEachDamage(t *testing.T) {
	dir := t.TempDir()
	was := map[string][]byte{"a": make([]byte, 5), "below/b": make([]byte, 5000), "empty": nil}
	for name, b := range was {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, b, 0o600))
	}
	damaged := map[string]int{}
	far, last := 0, ""
	EachDamage(t, dir, 60, func(copied string, d Damage) {
		require.NotEqual(t, dir, copied)
		last = copied
		damaged[d.File]++
		for name, b := range was {
			got, err := os.ReadFile(filepath.Join(copied, filepath.FromSlash(name)))
			require.NoError(t, err)
			require.Len(t, got, len(b))
			differ := 0
			for i := range got {
				if got[i] != b[i] {
					differ++
					require.EqualValues(t, d.At, i)
				}
			}
			if name != d.File {
				require.Zero(t, differ)
				continue
			}
			require.Equal(t, 1, differ)
			if d.At >= header {
				far++
			}
		}
	})
	require.NoDirExists(t, last)
	require.Equal(t, map[string]int{"a": 30, "below/b": 30}, damaged)
	require.Positive(t, far)
	require.Less(t, far, 30)
	for name, b := range was {
		got, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		require.NoError(t, err)
		require.Equal(t, len(b), len(got))
		for i := range got {
			require.Zero(t, got[i])
		}
	}
}

func TestDamageTwiceIsNone(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a"), []byte("abc"), 0o600))
	d := draw(rand.New(rand.NewPCG(1, 1)), file{"a", 3})
	for _, same := range []bool{false, true} {
		d.Do(t, dir)
		b, err := os.ReadFile(filepath.Join(dir, "a"))
		require.NoError(t, err)
		require.Equal(t, same, string(b) == "abc")
	}
}
