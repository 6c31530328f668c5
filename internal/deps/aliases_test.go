package deps

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Go's documentation does not show the fields of a struct at an alias for it, so the comment of the alias lists them with their
// types.
func TestAliasesShowFields(t *testing.T) {
	parsed := make(map[string]*declared)
	of := func(dir string) *declared {
		if parsed[dir] == nil {
			parsed[dir] = declarations(t, dir)
		}
		return parsed[dir]
	}
	found := 0
	require.NoError(t, filepath.WalkDir(root, func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		name := d.Name()
		if name == "internal" || name == "testdata" || name == "node_modules" || name == "cmd" || strings.HasPrefix(name, ".") && dir != root {
			return fs.SkipDir
		}
		here := of(dir)
		for alias, target := range here.aliases {
			at, ok := strings.CutPrefix(target.path, module+"/")
			if !ok {
				continue
			}
			there := of(filepath.Join(root, filepath.FromSlash(at)))
			got, ok := there.structs[target.name]
			if !ok {
				continue
			}
			found++
			require.Equal(t, there.fields(got), here.fields(listed(t, here.comments[alias])), "the comment of %s in %s lists other fields than %s.%s has", alias, dir, path.Base(target.path), target.name)
		}
		return nil
	}))
	require.Greater(t, found, 10)
}

// target is what an alias stands for.
type target struct{ path, name string }

// declared are the exported aliases and structs of a package.
type declared struct {
	name     string
	aliases  map[string]target
	comments map[string]string
	structs  map[string]*ast.StructType
}

func declarations(t *testing.T, dir string) *declared {
	d := &declared{filepath.Base(dir), make(map[string]target), make(map[string]string), make(map[string]*ast.StructType)}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(t, err)
		d.name = f.Name.Name
		for _, decl := range f.Decls {
			g, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range g.Specs {
				got, ok := spec.(*ast.TypeSpec)
				if !ok || !got.Name.IsExported() {
					continue
				}
				switch as := got.Type.(type) {
				case *ast.StructType:
					d.structs[got.Name.Name] = as
				case *ast.SelectorExpr:
					if got.Assign.IsValid() {
						d.aliases[got.Name.Name] = target{imported(f, as.X.(*ast.Ident).Name), as.Sel.Name}
						d.comments[got.Name.Name] = g.Doc.Text() + got.Doc.Text()
					}
				}
			}
		}
	}
	return d
}

// imported returns the path of the package that a file knows by a name.
func imported(f *ast.File, name string) string {
	for _, i := range f.Imports {
		at, _ := strconv.Unquote(i.Path.Value)
		if i.Name != nil && i.Name.Name == name || i.Name == nil && path.Base(at) == name {
			return at
		}
	}
	return ""
}

// listed returns the struct with the fields that a comment lists: its lines that are indented.
func listed(t *testing.T, comment string) *ast.StructType {
	var fields strings.Builder
	for line := range strings.Lines(comment) {
		if strings.HasPrefix(line, "\t") {
			fields.WriteString(line)
		}
	}
	f, err := parser.ParseFile(token.NewFileSet(), "", "package p\ntype T struct {\n"+fields.String()+"}\n", parser.SkipObjectResolution)
	require.NoError(t, err, comment)
	return f.Decls[0].(*ast.GenDecl).Specs[0].(*ast.TypeSpec).Type.(*ast.StructType)
}

var named = regexp.MustCompile(`([a-z]\w*\.)?\b[A-Z]\w*`)

// fields returns the exported fields of a struct in a package and their types, by the packages that declare these.
func (d *declared) fields(structure *ast.StructType) map[string]string {
	all := make(map[string]string)
	for _, f := range structure.Fields.List {
		typ := named.ReplaceAllStringFunc(types.ExprString(f.Type), func(name string) string {
			if strings.Contains(name, ".") {
				return name
			}
			if a, ok := d.aliases[name]; ok {
				return path.Base(a.path) + "." + a.name
			}
			return d.name + "." + name
		})
		if f.Names == nil { // embedded
			all[typ] = typ
		}
		for _, name := range f.Names {
			if name.IsExported() {
				all[name.Name] = typ
			}
		}
	}
	return all
}
