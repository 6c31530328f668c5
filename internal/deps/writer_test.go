package deps

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// recordTypes are the types of package structure that a commit is made of.
var recordTypes = []string{
	"Commit", "Thread", "Context", "Run", "SpanSet", "Branch", "Checkpoint", "Summary", "Reflog", "Deletion",
	"Cut", "Value", "Remnant", "Block", "Chunk", "Span", "Tip",
}

// A maker is a part of the tree that may make records and apply commits by itself, though
// internal/write is the one writer. The path is the beginning of the names of its files.
type maker struct{ path, why string }

var makers = []maker{
	{"structure/", "has the types and their binary form, and generates records for tests"},
	{"internal/write/", "is the writer"},
	{"internal/judge/", "works out the states that a commit leads to"},
	{"internal/pack/", "reads and writes records of packs"},
	{"internal/embedded/frames.go", "decodes commits of the journal, or of a log"},
	{"internal/embedded/live/", "takes out of commits what was collected"},
	{"internal/embedded/keys/codec.go", "reads records of the index"},
	{"internal/remote/", "carries records and commits between processes"},
	{"internal/sharing/", "passes commits on to the owner of a store"},
	{"lineage/backend/upload.go", "cuts bodies for Upload, and makes commits of chunks"},
	{"lineage/backend/backendtest/", "tests engines"},
	{"lineage/search/searchtest/ids.go", "tests indexes with ids that no program chooses"},
	{"server/api/chat_pages.go", "compares records with the place where a page ended"},
}

// TestOneWriter requires that everything above an engine writes through internal/write.
func TestOneWriter(t *testing.T) {
	used := make(map[string]bool)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", ".bin", "testdata"}, d.Name()):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		made := recordsMade(file)
		if i := slices.IndexFunc(makers, func(m maker) bool { return strings.HasPrefix(filepath.ToSlash(name), m.path) }); i >= 0 {
			used[makers[i].path] = used[makers[i].path] || len(made) > 0
			return nil
		}
		for _, m := range made {
			t.Errorf("%v: %s outside of internal/write", files.Position(m.at), m.what)
		}
		return nil
	})
	require.NoError(t, err)
	for _, m := range makers {
		require.True(t, used[m.path], "%s makes no records: it needs no place in the list", m.path)
	}
}

func TestRecordsMade(t *testing.T) {
	tests := []struct {
		code string
		want []string
	}{
		{"s.Run{}", []string{"a structure.Run"}},
		{"&s.Tip{Context: id}", []string{"a structure.Tip"}},
		{"[]s.Span{{Ref: at}, {}}", []string{"a structure.Span"}},
		{"[]*s.Span{{Ref: at}}", []string{"a structure.Span"}},
		{"map[string]s.Value{name: {}}", []string{"a structure.Value"}},
		{"[]s.Record{&s.Run{}, run, &s.Cut{}}", []string{"a structure.Run", "a structure.Cut"}},
		{"new(s.Context)", []string{"a structure.Context"}},
		{"e.Apply(ctx, commit, o)", []string{"a commit is applied"}},
		{"store.engine().Apply(ctx, &s.Commit{}, o)", []string{"a commit is applied", "a structure.Commit"}},
		{"[]*s.Span{}", nil},
		{"[]*s.Span{one, other}", nil},
		{"s.SpanRef{Run: id}", nil},
		{"other.Run{}", nil},
		{"index.Apply(state, entries)", nil},
		{"make([]s.Record, 0, n)", nil},
	}
	for _, tt := range tests {
		file, err := parser.ParseFile(token.NewFileSet(), "", `package p; import s "`+module+`/structure"; var _ = `+tt.code, 0)
		require.NoError(t, err)
		var got []string
		for _, m := range recordsMade(file) {
			got = append(got, m.what)
		}
		require.Equal(t, tt.want, got, tt.code)
	}
}

// made is a place where a record is made or a commit applied.
type made struct {
	at   token.Pos
	what string
}

// recordsMade finds composite literals of record types, calls of new for them, and calls of
// a method Apply with three arguments, as that of backend.Engine has.
func recordsMade(file *ast.File) (found []made) {
	structure := localName(file, module+"/structure")
	record := func(expr ast.Expr) string {
		if star, ok := expr.(*ast.StarExpr); ok {
			expr = star.X
		}
		s, ok := expr.(*ast.SelectorExpr)
		if !ok || !isName(s.X, structure) || !slices.Contains(recordTypes, s.Sel.Name) {
			return ""
		}
		return s.Sel.Name
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			if name := record(n.Type); name != "" {
				found = append(found, made{n.Pos(), "a structure." + name})
			}
			if name := record(elementOf(n.Type)); name != "" && slices.ContainsFunc(n.Elts, isBare) {
				found = append(found, made{n.Pos(), "a structure." + name})
			}
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Apply" && len(n.Args) == 3 {
				found = append(found, made{n.Pos(), "a commit is applied"})
			}
			if isName(n.Fun, "new") && len(n.Args) == 1 && record(n.Args[0]) != "" {
				found = append(found, made{n.Pos(), "a structure." + record(n.Args[0])})
			}
		}
		return true
	})
	return found
}

// localName returns the name under which a file imports a package, or one that nothing has.
func localName(file *ast.File, path string) string {
	for _, i := range file.Imports {
		if got, err := strconv.Unquote(i.Path.Value); err != nil || got != path {
			continue
		}
		if i.Name != nil {
			return i.Name.Name
		}
		return path[strings.LastIndexByte(path, '/')+1:]
	}
	return "-"
}

func isName(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}

// elementOf returns the type of the elements of a literal's type, nil if it has none.
func elementOf(expr ast.Expr) ast.Expr {
	switch of := expr.(type) {
	case *ast.ArrayType:
		return of.Elt
	case *ast.MapType:
		return of.Value
	}
	return nil
}

// isBare reports whether an element is a literal that leaves its type out.
func isBare(e ast.Expr) bool {
	if kv, ok := e.(*ast.KeyValueExpr); ok {
		e = kv.Value
	}
	c, ok := e.(*ast.CompositeLit)
	return ok && c.Type == nil
}
