package lineage_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// go doc shows an alias without the fields of its type, so its comment names them.
func TestAliasesNameTheirFields(t *testing.T) {
	fset := token.NewFileSet()
	files := make(map[string][]*ast.File)
	for dir, name := range map[string]string{".": "lineage", "backend": "backend", "../structure": "structure", "../content": "content", "../internal/embedded": "embedded"} {
		paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
		require.NoError(t, err)
		for _, path := range paths {
			if !strings.HasSuffix(path, "_test.go") {
				source, err := os.ReadFile(path)
				require.NoError(t, err)
				f, err := parser.ParseFile(fset, path, source, parser.ParseComments)
				require.NoError(t, err)
				files[name] = append(files[name], f)
			}
		}
	}
	structs := make(map[string]*ast.StructType)
	for name, of := range files {
		for _, f := range of {
			ast.Inspect(f, func(n ast.Node) bool {
				if spec, ok := n.(*ast.TypeSpec); ok {
					if got, ok := spec.Type.(*ast.StructType); ok {
						structs[name+"."+spec.Name.Name] = got
					}
				}
				return true
			})
		}
	}
	got, err := doc.NewFromFiles(fset, files["lineage"], "lineage")
	require.NoError(t, err)
	checked := 0
	for _, typ := range got.Types {
		for _, s := range typ.Decl.Specs {
			spec := s.(*ast.TypeSpec)
			if spec.Assign == token.NoPos || !ast.IsExported(spec.Name.Name) {
				continue
			}
			of, ok := spec.Type.(*ast.SelectorExpr)
			require.True(t, ok, spec.Name.Name)
			fields, ok := structs[of.X.(*ast.Ident).Name+"."+of.Sel.Name]
			if !ok {
				continue
			}
			comment := typ.Doc
			if spec.Doc != nil {
				comment = spec.Doc.Text()
			}
			for _, f := range fields.Fields.List {
				for _, name := range f.Names {
					if ast.IsExported(name.Name) {
						require.Contains(t, comment, name.Name, "the comment of %s", spec.Name.Name)
						checked++
					}
				}
			}
		}
	}
	require.Greater(t, checked, 30)
}
