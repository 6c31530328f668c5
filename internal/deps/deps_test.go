package deps

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// root is the repository's top directory, seen from this package's.
const root = "../.."

// A pkg is what `go list` tells about one package of the module.
type pkg struct {
	ImportPath   string
	Imports      []string
	TestImports  []string
	XTestImports []string
	Deps         []string
}

// An import that is there on one operating system only counts as well.
func TestImportsPointOneWay(t *testing.T) {
	for _, goos := range []string{"linux", "darwin", "windows"} {
		t.Run(goos, func(t *testing.T) {
			for _, p := range list(t, goos) {
				for _, v := range violations(p) {
					t.Error(v)
				}
			}
		})
	}
}

// The table itself has an order, so that no packages can import each other in a circle.
func TestPackagesImportOnlyPackagesListedBefore(t *testing.T) {
	known := make(map[string]bool)
	for _, r := range importRules {
		require.False(t, known[r.path], "%s is listed twice", r.path)
		for _, o := range r.ours {
			require.True(t, known[o], "%s may import %s, which is not listed before it", r.path, o)
		}
		known[r.path] = true
	}
}

// The program does not import packages that read all of their data whenever it starts.
func TestStartReadsNoTables(t *testing.T) {
	all := list(t, "linux")
	program := slices.IndexFunc(all, func(p pkg) bool { return below(p.ImportPath) == "cmd/lineage" })
	require.Contains(t, all[program].Deps, chroma)
	require.NotContains(t, all[program].Deps, chroma+"/styles")
}

func TestViolations(t *testing.T) {
	ours := func(path string) string { return module + "/" + path }
	tests := []struct {
		name string
		pkg  pkg
		want string // part of the only violation; empty if there must be none
	}{
		{"an import downwards", pkg{ImportPath: ours("structure"), Imports: []string{"io", ours("content"), uuid}}, ""},
		{"an import upwards", pkg{ImportPath: ours("content"), Imports: []string{ours("structure")}}, "content must not import structure"},
		{"an import past the port", pkg{ImportPath: ours("lineage"), Imports: []string{ours("internal/journal")}}, "lineage must not import internal/journal"},
		{"a package that is not listed", pkg{ImportPath: ours("attic")}, "attic is not in the table"},
		{"a package below one that is no tree", pkg{ImportPath: ours("content/attic")}, "content/attic is not in the table"},
		{"a package below a tree", pkg{ImportPath: ours("cmd/lineage"), Imports: []string{ours("lineage"), "github.com/spf13/cobra"}}, ""},
		{"a library of another package", pkg{ImportPath: ours("structure"), Imports: []string{bolt}}, "structure must not import " + bolt},
		{"a package inside a library", pkg{ImportPath: ours("content"), Imports: []string{compress + "/zstd"}}, ""},
		{"a library with a longer name", pkg{ImportPath: ours("content"), Imports: []string{compress + "or"}}, "content must not import " + compress + "or"},
		{"test libraries in a test", pkg{ImportPath: ours("content"), XTestImports: []string{testify + "/require", rapid, ours("content")}}, ""},
		{"test libraries outside tests", pkg{ImportPath: ours("content"), Imports: []string{testify + "/require"}}, "content must not import " + testify},
		{"the conformance suite in a test", pkg{ImportPath: ours("internal/embedded"), TestImports: []string{ours("lineage/backend/backendtest")}}, ""},
		{"an import upwards in a test", pkg{ImportPath: ours("content"), TestImports: []string{ours("lineage")}}, "content's tests must not import lineage"},
		{"a driver behind other imports", pkg{ImportPath: ours("sqladapter"), Deps: []string{"database/sql", sqlite + "/lib"}}, "sqladapter must not link a SQL driver, " + sqlite},
		{"a driver in its own package", pkg{ImportPath: ours("sqladapter/sqlite"), Deps: []string{"database/sql", sqlite}}, ""},
		{"a driver in the package of another driver", pkg{ImportPath: ours("sqladapter/sqlite"), Deps: []string{postgres}}, "sqladapter/sqlite must not link a SQL driver"},
		{"the SQL library in the store", pkg{ImportPath: ours("lineage"), Deps: []string{"database/sql"}}, "lineage must not link the SQL library"},
		{"the SQL library's interfaces in the store", pkg{ImportPath: ours("lineage"), Deps: []string{"database/sql/driver"}}, ""},
		{"an AI client in the engine", pkg{ImportPath: ours("lineage/engine"), Deps: []string{"github.com/openai/openai-go/v3"}}, "lineage/engine must not link an AI client"},
		{"a test database in the program", pkg{ImportPath: ours("cmd/lineage"), Deps: []string{ours("internal/pgcluster")}}, "cmd/lineage must not link a database server for tests"},
		{"a new library behind the store", pkg{ImportPath: ours("lineage"), Deps: []string{"example.com/large"}}, "lineage must not link example.com/large"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := violations(tt.pkg)
			if tt.want == "" {
				require.Empty(t, got)
				return
			}
			require.Len(t, got, 1)
			require.Contains(t, got[0], tt.want)
		})
	}
}

// violations says, a sentence each, what p does that the table does not allow.
func violations(p pkg) []string {
	path := below(p.ImportPath)
	i := slices.IndexFunc(importRules, func(r importRule) bool { return r.holds(path) })
	if i < 0 {
		return []string{fmt.Sprintf("%s is not in the table: add it to importRules, with what it may import", path)}
	}
	r := importRules[i]
	var found []string
	for _, imp := range p.Imports {
		if !r.allows(imp) {
			found = append(found, fmt.Sprintf("%s must not import %s", path, below(imp)))
		}
	}
	for _, imp := range slices.Concat(p.TestImports, p.XTestImports) {
		if !r.allows(imp) && !r.allowsInTests(imp) {
			found = append(found, fmt.Sprintf("%s's tests must not import %s", path, below(imp)))
		}
	}
	for _, h := range heavies {
		if slices.Contains(h.packages, r.path) {
			continue
		}
		for _, dep := range p.Deps {
			if h.has(dep) {
				found = append(found, fmt.Sprintf("%s must not link %s, %s", path, h.what, dep))
			}
		}
	}
	if r.path == "lineage" {
		for _, dep := range p.Deps {
			if !standard(dep) && !ownPackage(dep) && !within(dep, storeLinks) {
				found = append(found, fmt.Sprintf("%s must not link %s: whoever imports it links that too", path, dep))
			}
		}
	}
	return found
}

func (r importRule) holds(path string) bool {
	return path == r.path || r.tree && strings.HasPrefix(path, r.path+"/")
}

func (r importRule) allows(imp string) bool {
	switch {
	case r.any || standard(imp):
		return true
	case ownPackage(imp):
		return r.holds(below(imp)) || slices.Contains(r.ours, below(imp))
	default:
		return within(imp, r.libs)
	}
}

func (r importRule) allowsInTests(imp string) bool {
	if ownPackage(imp) {
		return slices.Contains(testPackages, below(imp))
	}
	return within(imp, testLibs)
}

// has takes a standard package alone: google/uuid links database/sql/driver, which is only interfaces.
func (h heavy) has(dep string) bool {
	if standard(dep) {
		return slices.Contains(h.paths, dep)
	}
	return within(dep, h.paths)
}

// below cuts the module's path off a package of ours and leaves other paths alone.
func below(path string) string {
	return strings.TrimPrefix(path, module+"/")
}

func ownPackage(path string) bool {
	return within(path, []string{module})
}

// standard reports whether path belongs to the standard library, whose paths have no dot in their first element.
func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

// within reports whether path is one of the trees or lies below one.
func within(path string, trees []string) bool {
	return slices.ContainsFunc(trees, func(tree string) bool {
		return path == tree || strings.HasPrefix(path, tree+"/")
	})
}

// list returns every package of the module as goos sees it.
func list(t *testing.T, goos string) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Imports,TestImports,XTestImports,Deps", "./...")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOOS="+goos, "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())

	var pkgs []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		pkgs = append(pkgs, p)
	}
	require.NotEmpty(t, pkgs)
	return pkgs
}
