package importer_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/storetest"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/formats"
	"github.com/lineage-store/lineage/lineage/archive/importer"
)

// A large conversation is in a temporary file without a name while it is imported, and not when the import has ended.
func TestLargeTextsAreInFiles(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	mapped := func() bool {
		maps, err := os.ReadFile("/proc/self/maps")
		require.NoError(t, err)
		return strings.Contains(string(maps), dir)
	}
	text := `{"messages":[{"role":"user","content":"fill"}` + strings.Repeat(" ", archive.LargeItem) + `],"field":"` + strings.Repeat("x", archive.LargeField) + `"}` // the field is read when it is imported
	begun, err := importer.Begin(context.Background(), archive.Stream("made.json", strings.NewReader(text)), importer.Options{Formats: formats.All()})
	require.NoError(t, err)
	defer begun.Close()
	require.True(t, mapped())
	left, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	require.NoError(t, err)
	require.Empty(t, left)
	report, err := begun.Into(storetest.New(t))
	require.NoError(t, err)
	require.EqualValues(t, 1, report.NewMessages)
	require.Eventually(t, func() bool { runtime.GC(); return !mapped() }, time.Minute, time.Millisecond)
	runtime.KeepAlive(begun)
}
