package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A group of commands stands on the shared packages, in their order, and not on another group.
func TestGroupsStandOnTheSharedPackages(t *testing.T) {
	shared := []string{"memory", "screen", "app", "show", "threads"}
	allowed := map[string][]string{"serving": {"sources"}, "sources": {"login"}} // serve --follow, follow install
	dirs, err := os.ReadDir("internal")
	require.NoError(t, err)
	require.Greater(t, len(dirs), len(shared))
	for _, dir := range dirs {
		name, below := dir.Name(), shared
		if i := slices.Index(shared, name); i >= 0 {
			below = shared[:i]
		}
		files, err := filepath.Glob(filepath.Join("internal", name, "*.go"))
		require.NoError(t, err)
		require.NotEmpty(t, files, name)
		for _, file := range files {
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
			require.NoError(t, err)
			for _, i := range parsed.Imports {
				if _, imported, ours := strings.Cut(strings.Trim(i.Path.Value, `"`), "cmd/lineage/internal/"); ours {
					require.Contains(t, slices.Concat(below, allowed[name], []string{name}), imported, file)
				}
			}
		}
	}
}
