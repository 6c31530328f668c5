package deps

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// starters are functions that start goroutines, by their names.
var starters = []string{"Go", "Parallel", "RunParallel", "AfterFunc"}

// unwatched are packages that start goroutines and are tested without the race detector, with the reason.
var unwatched = map[string]string{
	"cmd/lineage/internal/app":     "waits for one signal",
	"cmd/lineage/internal/serving": "starts what server tests",
	"internal/pgcluster":           "passes on what a process prints",
	"lineage/backend/backendtest":  "is run by the packages of engines",
	"lineage/chat/chattest":        "is run by the packages of chat stores",
	"lineage/engine/enginetest":    "is run by lineage/engine",
	"sqladapter/internal/chatrows": "divides a loop",
	"sqladapter/projecttest":       "is run by the adapters",
	"sqladapter/sqltest":           "is run by the adapters",
}

// A package that starts goroutines is tested with the race detector, unless unwatched says why not.
func TestWatchedPackages(t *testing.T) {
	watched := marked(t, "packages", "race")
	for _, p := range list(t, "linux") {
		dir := strings.TrimPrefix(p.ImportPath, module+"/")
		starts := startsGoroutines(t, dir)
		_, excused := unwatched[dir]
		switch {
		case slices.Contains(watched, "./"+dir):
			require.False(t, excused, "%s is watched", dir)
		case starts:
			require.True(t, excused, "%s starts goroutines and has no line //test:race in a test file", dir)
		default:
			require.False(t, excused, "%s starts no goroutines", dir)
		}
	}
}

// marked returns what scripts/marked.sh prints.
func marked(t *testing.T, kind, word string) []string {
	command := exec.Command("bash", filepath.Join(root, "scripts", "marked.sh"), kind, word)
	command.Stderr = os.Stderr
	out, err := command.Output()
	require.NoError(t, err)
	words := strings.Fields(string(out))
	require.NotEmpty(t, words)
	return words
}

// In watched packages, the tests marked norace are skipped, by name, in the run with the race detector, and run without it.
// So all tests of such a name are marked.
func TestMarkedTests(t *testing.T) {
	pattern := regexp.MustCompile(marked(t, "tests", "norace")[0])
	watched, found := marked(t, "packages", "race"), 0
	for _, p := range list(t, "linux") {
		dir := strings.TrimPrefix(p.ImportPath, module+"/")
		names, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(dir), "*_test.go"))
		require.NoError(t, err)
		for _, name := range names {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
			require.NoError(t, err)
			for _, d := range file.Decls {
				f, ok := d.(*ast.FuncDecl)
				if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Test") {
					continue
				}
				got := f.Doc != nil && slices.ContainsFunc(f.Doc.List, func(c *ast.Comment) bool { return c.Text == "//test:norace" })
				if !slices.Contains(watched, "./"+dir) {
					require.False(t, got, "%s in %s: no test of this package runs with the race detector", f.Name.Name, name)
					continue
				}
				require.Equal(t, got, pattern.MatchString(f.Name.Name), "%s in %s", f.Name.Name, name)
				if got {
					found++
				}
			}
		}
	}
	require.Positive(t, found)
}

// startsGoroutines reports whether a package starts goroutines, except in its tests.
func startsGoroutines(t *testing.T, dir string) bool {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(dir), "*.go"))
	require.NoError(t, err)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		if len(startsIn(file)) > 0 {
			return true
		}
	}
	return false
}

// startsIn returns where a file starts goroutines.
func startsIn(file *ast.File) map[token.Pos]bool {
	starts := map[token.Pos]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			starts[n.Pos()] = true
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok && slices.Contains(starters, s.Sel.Name) {
				starts[n.Pos()] = true
			}
		}
		return true
	})
	return starts
}

func TestStartsIn(t *testing.T) {
	for body, want := range map[string]int{
		"f()": 0, "go f()": 1, "all.Go(f)": 1, "t.Parallel()": 1, "time.AfterFunc(d, f)": 1, "defer func() { go f() }()": 1,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\nfunc x() { "+body+" }", 0)
		require.NoError(t, err)
		require.Len(t, startsIn(file), want, body)
	}
}
