package summarize

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
)

// conversation reads a conversation from testdata: passages under lines of === and the role.
func conversation(t testing.TB, name string) []lineage.Passage {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
	require.NoError(t, err)
	var passages []lineage.Passage
	for part := range strings.SplitSeq("\n"+string(text), "\n=== ") {
		if part == "" {
			continue
		}
		head, body, _ := strings.Cut(part, "\n")
		role, who, _ := strings.Cut(head, " ")
		passages = append(passages, lineage.Passage{Role: role, Name: who, Text: strings.TrimSpace(body)})
	}
	require.NotEmpty(t, passages)
	return passages
}

// requireGolden compares text with a file in testdata.
func requireGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if os.Getenv("LINEAGE_UPDATE_GOLDEN") != "" {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o666))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}
