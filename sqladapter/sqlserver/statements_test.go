package sqlserver_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	mssql "github.com/microsoft/go-mssqldb"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/internal/statements"
	"github.com/lineage-store/lineage/sqladapter/sqlserver"
)

// TestStatements renders every statement of the adapter, compares it with the golden file and
// checks it against known rules of SQL Server.
func TestStatements(t *testing.T) {
	var golden strings.Builder
	limits, syntax := sqlserver.Dialect{}.Limits(), sqlserver.Dialect{}.Syntax()
	for _, s := range all(t) {
		if !s.IsFor(sqlserver.Dialect{}) {
			continue
		}
		for _, n := range []int{1, 3} {
			text, err := syntax.Render(s.Text, n)
			require.NoError(t, err, s.Name)
			require.Empty(t, checkTSQL(text), "%s: %s", s.Name, text)
			if !strings.Contains(string(s.Text), "{nth}") { // finds the key
				require.NotContains(t, strings.ReplaceAll(text, "OFFSET 0 ROWS", ""), "OFFSET", "%s: pages begin behind a key", s.Name)
			}
			if n == 1 || s.Repeats() {
				fmt.Fprintf(&golden, "-- %s, %d\n%s\n\n", s.Name, n, text)
			}
		}
		most, err := syntax.Render(s.Text, s.Most(limits))
		require.NoError(t, err, s.Name)
		require.Empty(t, checkSize(most), "%s, with the most that it repeats", s.Name)
	}
	compareGolden(t, "statements.golden", golden.String())
}

var (
	onColumn  = regexp.MustCompile(`\[\w+\] COLLATE`)
	keyIsBare = regexp.MustCompile(`\[\w*([iI]d|name)\] (=|<|>|IN \() ?@p`)
)

// TestPlans requires that texts of any length are declared alike, and that conditions can use the
// indexes of adopted tables: each condition that changes the collation of a column has a second one
// that does not.
//
// feature: storage/plans
func TestPlans(t *testing.T) {
	syntax := sqlserver.Dialect{}.Syntax()
	for _, length := range []int{0, 1, 255, 4000, 4001, 100_000} {
		require.IsType(t, mssql.NVarCharMax(""), syntax.Argument(strings.Repeat("x", length)))
		require.IsType(t, "", syntax.Bytes(make([]byte, length)))
	}
	for _, other := range []any{nil, int64(1), true, []byte("x")} {
		require.Equal(t, other, syntax.Argument(other))
	}
	for _, s := range all(t) {
		if !s.IsFor(sqlserver.Dialect{}) || strings.HasPrefix(s.Name, "dialect.") || s.Name == "sweepSQL.unusedUsers" { // reads all rows
			continue
		}
		text, err := syntax.Render(s.Text, 2)
		require.NoError(t, err)
		_, condition, _ := strings.Cut(text, "WHERE")
		require.Empty(t, keyIsBare.FindString(condition), "%s: a key is compared with a parameter of its own size: %s", s.Name, text)
		loose := strings.Count(text, "COLLATE DATABASE_DEFAULT")
		compared := len(onColumn.FindAllString(text, -1)) - loose - strings.Count(text, "SELECT m.[chatId] COLLATE") - strings.Count(text, "SELECT m.[id] COLLATE") -
			3*strings.Count(text, "HASHBYTES")
		require.LessOrEqual(t, compared, loose, "%s: %s", s.Name, text)
	}
}

func all(t *testing.T) []statements.Statement {
	found, err := statements.Of()
	require.NoError(t, err)
	require.Greater(t, len(found), 40)
	own := sqlserver.StatementsOfDialect()
	for _, name := range slices.Sorted(maps.Keys(own)) {
		found = append(found, statements.Statement{Name: "dialect." + name, Text: sqladapter.Statement(own[name])})
	}
	return found
}

// TestSchema checks every script.
//
// feature: storage/schema
func TestSchema(t *testing.T) {
	scripts, err := filepath.Glob("*.sql")
	require.NoError(t, err)
	require.NotEmpty(t, scripts)
	whole := ""
	for _, script := range scripts {
		text, err := os.ReadFile(script)
		require.NoError(t, err)
		for batch := range strings.SplitSeq(string(text), "\nGO\n") {
			require.Empty(t, checkTSQL(batch), script)
		}
		whole += string(text) + "\n"
	}
	require.Empty(t, checkTSQL(strings.ReplaceAll(whole, "\nGO\n", "\n")), "all of them together")
}

func compareGolden(t *testing.T, name, got string) {
	path := filepath.Join("testdata", name)
	if os.Getenv("LINEAGE_UPDATE_GOLDEN") != "" {
		require.NoError(t, os.MkdirAll("testdata", 0o777))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o666))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}
