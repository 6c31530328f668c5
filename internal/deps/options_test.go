package deps

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Options are structs that are passed by value: the zero value is the default, and there is no other.
func TestOptionsAreValues(t *testing.T) {
	files := token.NewFileSet()
	for _, top := range []string{"lineage", "sqladapter"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			f, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			for _, fault := range pointersToOptions(f) {
				t.Errorf("%s: %s takes a pointer to options", path, fault)
			}
			return nil
		})
		require.NoError(t, err)
	}
}

func TestPointersToOptions(t *testing.T) {
	const program = `package p
func Right(o Options, n *int, f func(*int)) {}
func Own(o *Options) {}
func Others(ctx context.Context, o *other.ImportOptions) error { return nil }
func (s *Store) Method(o ...*Options) {}
func (o *Options) LimitPool() {}
func internal(o *Options) {}
type Suite struct{ Open func(o *Options) error }
type Store interface{ Read(o *ReadOptions) }
`
	f, err := parser.ParseFile(token.NewFileSet(), "p.go", program, 0)
	require.NoError(t, err)
	require.Equal(t, []string{"Own", "Others", "Method", "Suite", "Store"}, pointersToOptions(f))
}

// pointersToOptions names the exported functions, and types with functions, that take a pointer to
// options.
func pointersToOptions(f *ast.File) (names []string) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && takesPointerToOptions(d.Type) {
				names = append(names, d.Name.Name)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if s, ok := s.(*ast.TypeSpec); ok && s.Name.IsExported() && takesPointerToOptions(s.Type) {
					names = append(names, s.Name.Name)
				}
			}
		}
	}
	return names
}

func takesPointerToOptions(in ast.Node) (found bool) {
	ast.Inspect(in, func(n ast.Node) bool {
		function, ok := n.(*ast.FuncType)
		if !ok {
			return true
		}
		for _, p := range function.Params.List {
			expr := p.Type
			if list, ok := expr.(*ast.Ellipsis); ok {
				expr = list.Elt
			}
			pointer, ok := expr.(*ast.StarExpr)
			found = found || ok && strings.HasSuffix(lastName(pointer.X), "Options")
		}
		return true
	})
	return found
}

// lastName returns the name of a type without its package.
func lastName(expr ast.Expr) string {
	switch of := expr.(type) {
	case *ast.Ident:
		return of.Name
	case *ast.SelectorExpr:
		return of.Sel.Name
	}
	return ""
}
