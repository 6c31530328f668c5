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

// The packages marked sequential, which are tested without the race detector, start no goroutines, in their tests neither,
// and import none of ours that does.
func TestSequentialPackages(t *testing.T) {
	all := map[string]pkg{}
	for _, p := range list(t, "linux") {
		all[p.ImportPath] = p
	}
	for _, path := range marked(t, "packages", "sequential") {
		path = strings.TrimPrefix(path, "./")
		p, ok := all[module+"/"+path]
		require.True(t, ok, path)
		requireSequential(t, path, true)
		imported := append(slices.Clone(p.Deps), slices.Concat(p.TestImports, p.XTestImports)...)
		for _, i := range slices.Concat(p.TestImports, p.XTestImports) {
			imported = append(imported, all[i].Deps...)
		}
		for _, i := range imported {
			if below, ok := strings.CutPrefix(i, module+"/"); ok && below != path {
				requireSequential(t, below, false)
			}
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

// The tests marked norace are skipped, by name, in the run with the race detector. So all tests of such a name are marked:
// another would run in the wrong one of the two runs.
func TestMarkedTests(t *testing.T) {
	pattern := regexp.MustCompile(marked(t, "tests", "norace")[0])
	packages, found := marked(t, "packages", "norace"), 0
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
				is := f.Doc != nil && slices.ContainsFunc(f.Doc.List, func(c *ast.Comment) bool { return c.Text == "//test:norace" })
				require.Equal(t, is, pattern.MatchString(f.Name.Name), "%s in %s", f.Name.Name, name)
				if is {
					require.Contains(t, packages, "./"+dir)
					found++
				}
			}
		}
	}
	require.Positive(t, found)
}

// requireSequential requires the files of a package to start no goroutines.
func requireSequential(t *testing.T, path string, tests bool) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(path), "*.go"))
	require.NoError(t, err)
	require.NotEmpty(t, names, path)
	for _, name := range names {
		if !tests && strings.HasSuffix(name, "_test.go") {
			continue
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for at := range startsIn(file) {
			t.Errorf("%v starts a goroutine: the package is tested without the race detector", files.Position(at))
		}
	}
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
