package bench

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
)

// Generated archives can be imported and have what they say; the same seed gives the same bytes.
func TestGenerate(t *testing.T) {
	want := map[string]int64{"chats": 6, "runs": 600, "sessions": 300, "forks": 0, "prose": 36, "base64": 30, "languages": 36, "long": 3, "branches": 530, "mixed": 36, "essays": 12, "images": 24}
	for shape := range Shapes {
		t.Run(shape, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, Generate(dir, shape, 3, 7))
			s, err := lineage.Open(t.Context(), filepath.Join(t.TempDir(), "store"), lineage.Options{Durability: lineage.Normal})
			require.NoError(t, err)
			defer func() { require.NoError(t, s.Close()) }()
			report, err := importer.Import(t.Context(), s, archive.Path(dir), importer.Options{})
			require.NoError(t, err)
			require.Zero(t, report.SkippedCount)
			if want[shape] > 0 {
				require.Equal(t, want[shape], report.Messages)
			} else {
				require.GreaterOrEqual(t, report.Messages, int64(20*3))
			}
			if shape == "sessions" || shape == "branches" {
				return
			}
			again := t.TempDir()
			require.NoError(t, Generate(again, shape, 3, 7))
			a, err := os.ReadFile(filepath.Join(dir, shape+".jsonl"))
			require.NoError(t, err)
			b, err := os.ReadFile(filepath.Join(again, shape+".jsonl"))
			require.NoError(t, err)
			require.Equal(t, a, b)
		})
	}
	require.ErrorIs(t, Generate(t.TempDir(), "none", 1, 1), ErrShape)
}
