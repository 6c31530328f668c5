package deps

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// starters are functions that start goroutines, by their names.
var starters = []string{"Go", "Parallel", "RunParallel", "AfterFunc"}

// The packages that the Makefile tests without the race detector start no goroutines, in their tests neither, and import
// none of ours that does.
func TestSequentialPackages(t *testing.T) {
	all := map[string]pkg{}
	for _, p := range list(t, "linux") {
		all[p.ImportPath] = p
	}
	for _, path := range makeList(t, "SEQUENTIAL") {
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

// makeList returns the words of a variable of the Makefile.
func makeList(t *testing.T, name string) []string {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	found := regexp.MustCompile(`(?m)^` + name + ` := ((?:.*\\\n)*.+)$`).FindSubmatch(makefile)
	require.NotNil(t, found, name)
	return strings.Fields(strings.ReplaceAll(string(found[1]), "\\\n", ""))
}

// A test that the Makefile skips in the run of all packages is run in that of the packages in ONCE, which have all tests of
// its name: one elsewhere would never run.
func TestSkippedTestsRunElsewhere(t *testing.T) {
	skipped := makeList(t, "ONCETESTS")
	declared := make(map[string][]string)
	for _, p := range list(t, "linux") {
		dir := strings.TrimPrefix(p.ImportPath, module+"/")
		names, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(dir), "*_test.go"))
		require.NoError(t, err)
		for _, name := range names {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			for _, d := range file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && slices.Contains(skipped, f.Name.Name) {
					declared[f.Name.Name] = append(declared[f.Name.Name], dir)
				}
			}
		}
	}
	once := makeList(t, "ONCE")
	for _, name := range skipped {
		require.NotEmpty(t, declared[name], name)
		require.Subset(t, once, declared[name], name)
	}
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
