package remote

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// TestEveryErrorHasACode reads the source of the port. Each of its errors must have a code or a
// form here.
func TestEveryErrorHasACode(t *testing.T) {
	const port = "../../lineage/backend"
	ours, err := os.ReadFile("errors.go")
	require.NoError(t, err)
	entries, err := os.ReadDir(port)
	require.NoError(t, err)
	found := 0
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(port, entry.Name()), nil, 0)
		require.NoError(t, err)
		for _, name := range errorsOf(file) {
			found++
			if strings.HasPrefix(name, "Err") {
				require.Contains(t, string(ours), "\tbackend."+name+",\n", "no code for backend.%s", name)
			} else {
				require.Contains(t, string(ours), "\tcase *backend."+name+":\n", "no form for backend.%s", name)
			}
		}
	}
	require.Greater(t, found, 15)
}

// errorsOf returns the names of the errors that a file declares, and of the types with a method
// Error.
func errorsOf(file *ast.File) (names []string) {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if v, ok := s.(*ast.ValueSpec); ok && d.Tok == token.VAR {
					for _, name := range v.Names {
						if strings.HasPrefix(name.Name, "Err") {
							names = append(names, name.Name)
						}
					}
				}
			}
		case *ast.FuncDecl:
			if d.Recv == nil || d.Name.Name != "Error" {
				continue
			}
			expr := d.Recv.List[0].Type
			if star, ok := expr.(*ast.StarExpr); ok {
				expr = star.X
			}
			names = append(names, expr.(*ast.Ident).Name)
		}
	}
	return names
}

func overTheWire(t require.TestingT, err error) (back error) {
	out := newBody()
	failure(out, &err)
	require.NoError(t, out.err)
	in := &wire{b: out.b[headerSize:], reading: true}
	failure(in, &back)
	require.NoError(t, in.end())
	return back
}

func TestErrorsComeBack(t *testing.T) {
	for _, s := range sentinels {
		require.Equal(t, s, overTheWire(t, s), "a sentinel is itself")
	}
	rapid.Check(t, func(t *rapid.T) {
		err := drawError(t, 0)
		back := overTheWire(t, err)
		require.Equal(t, err.Error(), back.Error())
		for _, s := range sentinels {
			require.Equal(t, errors.Is(err, s), errors.Is(back, s), "%v in %v", s, err)
		}
		sameAs[*backend.SubjectError](t, err, back, func(e *backend.SubjectError) any { return []string{e.Subject, e.ID, e.Detail} })
		sameAs[*backend.TipError](t, err, back, func(e *backend.TipError) any { return *e })
		sameAs[*backend.DivergedError](t, err, back, func(e *backend.DivergedError) any { return *e })
		sameAs[*backend.CorruptError](t, err, back, func(e *backend.CorruptError) any { return *e })
		sameAs[*backend.LockedError](t, err, back, func(e *backend.LockedError) any { return *e })
	})
}

// sameAs requires that the first error with fields in err is also in back.
func sameAs[E error](t *rapid.T, err, back error, fields func(E) any) {
	var a, b E
	if first := withFields(err); first == nil || !errors.As(first, &a) {
		return
	}
	require.True(t, errors.As(back, &b), "%T in %v", a, err)
	require.Equal(t, fields(a), fields(b))
}

func drawError(t *rapid.T, depth int) error {
	word := rapid.StringN(0, 20, 40)
	kind := rapid.IntRange(0, 8).Draw(t, "kind")
	if depth > 5 {
		kind = min(kind, 1)
	}
	switch kind {
	case 0:
		return errors.New(word.Draw(t, "text"))
	case 1:
		return rapid.SampledFrom(sentinels).Draw(t, "sentinel")
	case 2:
		return fmt.Errorf("%s: %w", word.Draw(t, "text"), drawError(t, depth+1))
	case 3:
		return errors.Join(drawError(t, depth+1), drawError(t, depth+1))
	case 4:
		return &backend.SubjectError{Subject: word.Draw(t, "subject"), ID: word.Draw(t, "id"), Detail: word.Draw(t, "detail"), Err: drawError(t, depth+1)}
	case 5:
		return &backend.TipError{Context: structure.ContextID{1}, Expected: structure.SpanRef{Run: structure.RunID{2}, Seq: rapid.Uint64Min(1).Draw(t, "seq")}}
	case 6:
		return &backend.CorruptError{File: word.Draw(t, "file"), Offset: rapid.Int64().Draw(t, "offset"), What: word.Draw(t, "what")}
	case 7:
		return &backend.LockedError{Path: word.Draw(t, "path"), PID: rapid.Int().Draw(t, "pid"), Since: time.Unix(rapid.Int64Range(0, 1e10).Draw(t, "since"), 7).UTC()}
	}
	return &backend.DivergedError{After: backend.Cursor{Number: 3, ID: rapid.Uint64().Draw(t, "id")}}
}

// TestDeepErrors sends an error that is wrapped more often than maxNested.
func TestDeepErrors(t *testing.T) {
	err := error(backend.ErrNotFound)
	for range 100 {
		err = &backend.SubjectError{Subject: "s", ID: "i", Err: err}
	}
	back := overTheWire(t, err)
	require.ErrorIs(t, back, backend.ErrNotFound)
	require.Equal(t, err.Error(), back.Error())
	require.NotErrorIs(t, back, context.Canceled)
}
