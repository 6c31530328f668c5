package deps

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The code that the README shows is the body of an example, so it compiles and
// does what it says.
func TestReadmeShowsTheExample(t *testing.T) {
	shown := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(read(t, "README.md"), -1)
	require.Len(t, shown, 1)
	require.Equal(t, exampleBody(t, read(t, "lineage/example_test.go")), shown[0][1])
}

// exampleBody returns the body of the function Example, without its output and
// one tab less indented.
func exampleBody(t *testing.T, src string) string {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "example_test.go", src, 0)
	require.NoError(t, err)
	i := slices.IndexFunc(file.Decls, func(d ast.Decl) bool {
		f, ok := d.(*ast.FuncDecl)
		return ok && f.Name.Name == "Example"
	})
	require.NotEqual(t, -1, i)
	block := file.Decls[i].(*ast.FuncDecl).Body
	body := src[set.Position(block.Lbrace).Offset+2 : set.Position(block.Rbrace).Offset]
	body, _, found := strings.Cut(body, "\t// Output:\n")
	require.True(t, found)
	return strings.TrimPrefix(strings.ReplaceAll("\n"+body, "\n\t", "\n"), "\n")
}

// Tests that the documents name as proof are there.
func TestDocumentsNameTestsThatExist(t *testing.T) {
	tests := declaredTests(t)
	for _, document := range []string{"README.md", "docs/design.md"} {
		named := regexp.MustCompile(`\b(?:Test|Fuzz|Benchmark)[A-Z]\w*`).FindAllString(read(t, document), -1)
		for _, name := range named {
			require.True(t, tests[name], "%s names %s", document, name)
		}
	}
}

// declaredTests returns the names of the module's tests, benchmarks and fuzz
// targets.
func declaredTests(t *testing.T) map[string]bool {
	t.Helper()
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)[A-Z]\w*)\(`)
	names := make(map[string]bool)
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		src, err := os.ReadFile(path)
		for _, m := range declared.FindAllStringSubmatch(string(src), -1) {
			names[m[1]] = true
		}
		return err
	}))
	require.NotEmpty(t, names)
	return names
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, path))
	require.NoError(t, err)
	return string(b)
}
