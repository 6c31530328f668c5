// Package statements finds the SQL statements in the source of packages, so that tests can check
// every one.
package statements

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/internal/tables"
)

// Statement is a statement with its location: the variable or function, and the field.
type Statement struct {
	Name string
	Text sqladapter.Statement
}

// Repeats reports whether the statement has a mark that repeats.
func (s Statement) Repeats() bool {
	return strings.Contains(string(s.Text), "{list}") || strings.Contains(string(s.Text), "{rows") || strings.Contains(string(s.Text), "{likes") ||
		strings.Contains(string(s.Text), "{metadata")
}

// IsFor reports whether a database of a dialect has what the statement needs: row numbers, message counts, chain lengths,
// epochs, or a choice of indexes for the chats of a user.
func (s Statement) IsFor(d sqladapter.Dialect) bool {
	search, syntax := d.Search(), d.Syntax()
	has := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return strings.Contains(string(s.Text), name) })
	}
	return (search.Numbered || !has(`"rowid"`, `"row"`, `"hasText"`, `"lineage_terms"`, `"lineage_chats"`)) &&
		(search.Depths || !has(`"depth"`)) && (syntax.RowValues == sqladapter.AllColumns || !has(`{until:all `)) && (syntax.Epochs || !has(`"lineage_chains"`, `"epoch"`))
}

// Most returns the maximum number of repetitions of the statement's mark.
func (s Statement) Most(limits sqladapter.Limits) int {
	_, rows, ok := strings.Cut(string(s.Text), "{rows:")
	switch {
	case strings.Contains(string(s.Text), "{metadata"):
		return backend.MaxMetadata
	case !ok:
		return 1000
	}
	end := strings.IndexFunc(rows, func(r rune) bool { return r < '0' || r > '9' })
	columns, err := strconv.Atoi(rows[:end])
	if err != nil {
		return 1
	}
	return min(limits.Rows, limits.Parameters/columns)
}

// packages have the statements that are for every dialect. They are below sqladapter.
var packages = []string{"", "sqlchat", "project", "importing", "internal/chatrows", "internal/projected"}

// Of returns the statements in the source of the dialect in the working directory, and those for every
// dialect: the fields of variables whose names end with SQL, and those of SearchSyntax and of the tables.
func Of() ([]Statement, error) {
	var found []Statement
	dirs := []string{"."}
	for _, name := range packages {
		dirs = append(dirs, filepath.Join("..", name))
	}
	for _, dir := range dirs {
		paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			return nil, err
		}
		before := len(found)
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			if found, err = collect(found, file, path); err != nil {
				return nil, err
			}
		}
		if len(found) == before {
			return nil, fmt.Errorf("statements in %q: %w", dir, fs.ErrNotExist)
		}
	}
	for _, t := range tables.All {
		for name, text := range statementsOf(t) {
			found = append(found, Statement{t.Name + "." + name, text})
		}
	}
	for _, s := range found {
		if strings.Contains(string(s.Text), "{after:user ") {
			found = append(found, Statement{s.Name + " of all times", s.Text.OfAllTimes()})
		}
	}
	slices.SortFunc(found, func(a, b Statement) int { return strings.Compare(a.Name, b.Name) })
	return found, nil
}

// statementsOf returns the statements of a table by name.
func statementsOf(t *tables.Table) map[string]sqladapter.Statement {
	all := map[string]sqladapter.Statement{"insert": t.Insert, "select": t.Select, "known": t.Known, "page": t.Page, "count": t.Count, "remove": t.Remove}
	if t.Update != "" {
		all["update"] = t.Update
	}
	if t.Of != nil {
		all["of"] = t.SelectOf
	}
	return all
}

func collect(found []Statement, file *ast.File, path string) ([]Statement, error) {
	var problem error
	fields := func(owner string, literal *ast.CompositeLit) {
		for _, e := range literal.Elts {
			field, ok := e.(*ast.KeyValueExpr)
			if !ok {
				continue
			}
			key, isName := field.Key.(*ast.Ident)
			text, isText := textOf(field.Value)
			switch {
			case isName && isText:
				found = append(found, Statement{owner + "." + key.Name, sqladapter.Statement(text)})
			case strings.HasSuffix(owner, "SQL"):
				problem = fmt.Errorf("%s: %s has a statement that is no text", path, owner)
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			for i, name := range n.Names {
				if i < len(n.Values) && strings.HasSuffix(name.Name, "SQL") {
					if literal, ok := n.Values[i].(*ast.CompositeLit); ok {
						fields(name.Name, literal)
					} else if text, ok := textOf(n.Values[i]); ok {
						found = append(found, Statement{name.Name, sqladapter.Statement(text)})
					}
				}
			}
		case *ast.CompositeLit:
			if selected, ok := n.Type.(*ast.SelectorExpr); ok && selected.Sel.Name == "SearchSyntax" {
				fields("SearchSyntax", n)
			}
		}
		return true
	})
	return found, problem
}

// textOf returns the value of concatenated literals.
func textOf(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return "", false
		}
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		left, ok := textOf(e.X)
		right, okRight := textOf(e.Y)
		return left + right, ok && okRight && e.Op == token.ADD
	case *ast.ParenExpr:
		return textOf(e.X)
	}
	return "", false
}
