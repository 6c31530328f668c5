package sqlserver_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// checkTSQL returns the parts of a batch that SQL Server 2016 would refuse, according to known
// rules. It is used when no server is available.
func checkTSQL(batch string) []string {
	var problems []string
	tokens, err := tokensOf(batch)
	if err != nil {
		return []string{err.Error()}
	}
	var words []string
	for _, t := range tokens {
		if strings.HasPrefix(t, "[") {
			t = "[name]" // any name
		}
		words = append(words, t)
	}
	plain := strings.ToUpper(strings.Join(words, " "))
	for _, r := range refused {
		if found := r.pattern.FindString(plain); found != "" {
			problems = append(problems, fmt.Sprintf("%s: %s", r.why, found))
		}
	}
	problems = append(problems, checkSize(batch)...)
	problems = append(problems, checkSelects(tokens)...)
	return append(problems, checkTables(tokens)...)
}

var refused = []struct {
	why     string
	pattern *regexp.Regexp
}{
	{"LIMIT", regexp.MustCompile(`\bLIMIT\b`)},
	{"RETURNING", regexp.MustCompile(`\bRETURNING\b`)},
	{"ON CONFLICT", regexp.MustCompile(`\bON CONFLICT\b|\bINSERT OR\b|\bREPLACE INTO\b|\bEXCLUDED \.`)},
	{"a cast by ::", regexp.MustCompile(`: :`)},
	{"a boolean", regexp.MustCompile(`\bBOOLEAN\b|\bBOOL\b|\bTRUE\b|\bFALSE\b`)},
	{"a type of others", regexp.MustCompile(`\bJSONB?\b|\bBYTEA\b|\bBLOB\b|\bTEXT\b|\bSERIAL\b|\bTSVECTOR\b|\bTSQUERY\b|\bINTEGER PRIMARY KEY\b`)},
	{"a function of others", regexp.MustCompile(`\b(NOW|LENGTH|SUBSTR|RANDOM|STRFTIME|EXTRACT|UNNEST|ARRAY_AGG|GROUP_CONCAT|TO_TSVECTOR|PRINTF|IFNULL|JSON_EXTRACT|MIN_BY) \(`)},
	{"a function that 2016 has not", regexp.MustCompile(`\b(STRING_AGG|TRIM|CONCAT_WS|GREATEST|LEAST|TRANSLATE|GENERATE_SERIES|DATETRUNC|JSON_OBJECT|JSON_ARRAY) \(|\bIS (NOT )?DISTINCT FROM\b`)},
	{"|| joins no text", regexp.MustCompile(`\| \|`)},
	{"IF [NOT] EXISTS in CREATE", regexp.MustCompile(`\bCREATE (UNIQUE )?(TABLE|INDEX|VIEW|SCHEMA|TRIGGER|VIRTUAL TABLE) IF\b`)},
	{"an ordinal in GROUP BY", regexp.MustCompile(`\bGROUP BY( [^()]*,)? \d`)},
	{"MERGE", regexp.MustCompile(`\bMERGE\b`)},
	{"OUTPUT", regexp.MustCompile(`\bOUTPUT\b`)},
	{"a lock hint", regexp.MustCompile(`\b(NOLOCK|READPAST|ROWLOCK|TABLOCKX?|XLOCK|PAGLOCK|SNAPSHOT|SERIALIZABLE|READCOMMITTEDLOCK)\b|\bFOR (UPDATE|SHARE)\b`)},
	{"WITH RECURSIVE", regexp.MustCompile(`\bRECURSIVE\b`)},
	{"ILIKE, GLOB, REGEXP, MATCH", regexp.MustCompile(`\b(ILIKE|GLOB|REGEXP|MATCH|SIMILAR TO)\b`)},
	{"DISTINCT ON, USING, NULLS FIRST, FILTER", regexp.MustCompile(`\bDISTINCT ON\b|\bUSING \(|\bNULLS (FIRST|LAST)\b|\bFILTER \( WHERE\b`)},
	{"a list of columns compared with a list", regexp.MustCompile(`\) (IN|=|<|>) \( \(|\bWHERE \( [^()]+ , [^()]+ \) (IN|=|<|>)`)},
	{"EXISTS as a value", regexp.MustCompile(`\bSELECT (NOT )?EXISTS\b`)},
	{"AUTOINCREMENT, PRAGMA, ROWID", regexp.MustCompile(`\bAUTOINCREMENT\b|\bPRAGMA\b|\bROWID\b|\bWITHOUT ROWID\b|\bVIRTUAL\b`)},
	{"a parameter of others", regexp.MustCompile(`\?|\$ ?\d`)},
	{"quotes of others", regexp.MustCompile("[\"`]")},
	{"CREATE OR", regexp.MustCompile(`\bCREATE OR\b`)},
	{"OFFSET without ROWS", regexp.MustCompile(`\bOFFSET @?\w+( ;)?$|\bOFFSET @?\w+ [^R]`)},
	{"deferred constraints, cascading updates", regexp.MustCompile(`\bDEFERRABLE\b|\bON UPDATE\b`)},
}

var tokenPattern = regexp.MustCompile(`^(--[^\n]*|/\*(?s:.*?)\*/|N?'(?:[^']|'')*'|\[[^\]]*\]|@?@?[A-Za-z_#][\w#@$]*|\d[\w.]*|\s+|.)`)

// tokensOf splits a batch into tokens, without comments, with empty literals, and with brackets
// around quoted names.
func tokensOf(batch string) ([]string, error) {
	var tokens []string
	for rest := batch; rest != ""; {
		t := tokenPattern.FindString(rest)
		if t == "'" || t == "[" || t == "" {
			return nil, fmt.Errorf("no end to %.20q", rest)
		}
		rest = rest[len(t):]
		switch {
		case strings.HasPrefix(t, "--"), strings.HasPrefix(t, "/*"), strings.TrimSpace(t) == "":
			continue
		case strings.HasSuffix(t, "'"):
			t = "''"
		}
		tokens = append(tokens, t)
	}
	return tokens, nil
}

var (
	parameterPattern = regexp.MustCompile(`@p\d+`)
	nextRowPattern   = regexp.MustCompile(`\)\s*,\s*\(`)
)

// checkSize checks how often a batch repeats something.
func checkSize(batch string) (problems []string) {
	seen := map[string]bool{}
	for _, p := range parameterPattern.FindAllString(batch, -1) {
		seen[p] = true
	}
	if len(seen) > 2100 {
		problems = append(problems, fmt.Sprintf("%d parameters, at most 2100", len(seen)))
	}
	if len(nextRowPattern.FindAllString(batch, -1)) >= 1000 {
		problems = append(problems, "more than 1000 rows of VALUES")
	}
	return problems
}

// checkSelects checks queries in parentheses: they must not be ordered, and computed columns need
// names. A page must be ordered.
func checkSelects(tokens []string) []string {
	var problems []string
	for i, t := range tokens {
		if strings.EqualFold(t, "OFFSET") && !slices.ContainsFunc(tokens[:i], func(s string) bool { return strings.EqualFold(s, "ORDER") }) {
			problems = append(problems, "OFFSET without ORDER BY")
		}
		if t != "(" || i+1 == len(tokens) || !strings.EqualFold(tokens[i+1], "SELECT") {
			continue
		}
		body := inside(tokens[i:])
		top := outermost(body)
		if has(top, "ORDER") && !has(top, "OFFSET") && !has(top, "TOP") {
			problems = append(problems, "ORDER BY in a query in parentheses: "+strings.Join(body, " "))
		}
		before := ""
		if i > 0 {
			before = strings.ToUpper(tokens[i-1])
		}
		if before == "FROM" || before == "JOIN" || before == "AS" && !namesColumns(tokens[:i]) {
			for _, column := range columnsOf(top) {
				if !named(column) {
					problems = append(problems, "a column without a name: "+strings.Join(column, " "))
				}
			}
		}
	}
	plain := strings.ToUpper(strings.Join(tokens, " "))
	if strings.HasPrefix(plain, "WITH ") && strings.Contains(plain, " UNION ") && !strings.Contains(plain, " UNION ALL ") {
		problems = append(problems, "a recursive UNION that is not UNION ALL")
	}
	return problems
}

// inside returns the tokens between a parenthesis and its closing one.
func inside(tokens []string) []string {
	depth := 0
	for i, t := range tokens {
		switch t {
		case "(":
			depth++
		case ")":
			if depth--; depth == 0 {
				return tokens[1:i]
			}
		}
	}
	return tokens[1:]
}

// outermost removes tokens in parentheses.
func outermost(tokens []string) []string {
	var top []string
	depth := 0
	for _, t := range tokens {
		switch t {
		case "(":
			depth++
			top = append(top, "()")
		case ")":
			depth--
		default:
			if depth == 0 {
				top = append(top, t)
			}
		}
	}
	return top
}

func has(tokens []string, word string) bool {
	return slices.ContainsFunc(tokens, func(t string) bool { return strings.EqualFold(t, word) })
}

// namesColumns reports whether the tokens before AS are a name with a list of columns.
func namesColumns(before []string) bool {
	return len(before) > 1 && before[len(before)-2] == ")"
}

// columnsOf returns the selected columns of a query.
func columnsOf(top []string) [][]string {
	var columns [][]string
	var column []string
	for _, t := range top[1:] {
		if strings.EqualFold(t, "FROM") || strings.EqualFold(t, "UNION") {
			break
		}
		if t == "," {
			columns, column = append(columns, column), nil
			continue
		}
		column = append(column, t)
	}
	return append(columns, column)
}

func named(column []string) bool {
	n := len(column)
	if n == 0 {
		return false
	}
	last := column[n-1]
	isName := strings.HasPrefix(last, "[") || regexp.MustCompile(`^[A-Za-z_]\w*$`).MatchString(last)
	if n == 1 {
		return isName || last == "*"
	}
	return isName && (n == 3 && column[1] == "." || strings.EqualFold(column[n-2], "AS")) || last == "*"
}

// table is a table as known to checkTables.
type table struct {
	columns map[string]int // size in bytes, -1 for unlimited
	cascade []string       // tables whose deletions cascade here
}

var (
	columnPattern     = regexp.MustCompile(`(?i)^(\[\w+\]) (NVARCHAR|VARBINARY|BIGINT|INT|BIT|FLOAT)(?: \( (\w+) \))?`)
	referencesPattern = regexp.MustCompile(`(?i)REFERENCES (\[\w+\]) \( [^)]* \) ON DELETE CASCADE`)
	keyPattern        = regexp.MustCompile(`(?i)(PRIMARY KEY|UNIQUE)(?: CLUSTERED| NONCLUSTERED)?(?: \( ([^)]*) \))?`)
	indexPattern      = regexp.MustCompile(`(?i)CREATE (UNIQUE )?INDEX (\[\w+\]) ON (\[\w+\]) \( ([^)]*) \)`)
	createPattern     = regexp.MustCompile(`(?i)^CREATE TABLE (\[\w+\]) \(`)
)

// checkTables checks the tables that a batch creates: the size of keys and indexes, and that
// deletions do not cascade to a table on several paths.
func checkTables(tokens []string) []string {
	var problems []string
	tables := map[string]table{}
	for i := range tokens {
		m := createPattern.FindStringSubmatch(strings.Join(tokens[i:min(i+5, len(tokens))], " "))
		if m == nil {
			continue
		}
		made := table{columns: map[string]int{}}
		for _, part := range partsOf(inside(tokens[i+3:])) {
			text := strings.Join(part, " ")
			name := ""
			if c := columnPattern.FindStringSubmatch(text); c != nil {
				name = strings.ToLower(c[1])
				made.columns[name] = bytesOf(c[2], c[3])
			}
			if r := referencesPattern.FindStringSubmatch(text); r != nil {
				made.cascade = append(made.cascade, strings.ToLower(r[1]))
			}
			if k := keyPattern.FindStringSubmatch(text); k != nil {
				columns, most := k[2], 1700
				if columns == "" {
					columns = name
				}
				if strings.EqualFold(k[1], "PRIMARY KEY") {
					most = 900
				}
				problems = append(problems, checkKey(m[1], made, columns, most)...)
			}
		}
		tables[strings.ToLower(m[1])] = made
	}
	for _, index := range indexPattern.FindAllStringSubmatch(strings.Join(tokens, " "), -1) {
		if on, ok := tables[strings.ToLower(index[3])]; ok {
			problems = append(problems, checkKey(index[2], on, index[4], 1700)...)
		}
	}
	for name := range tables {
		for source := range tables {
			if n := ways(tables, name, source); n > 1 {
				problems = append(problems, fmt.Sprintf("a deletion in %s cascades to %s on %d ways", source, name, n))
			}
		}
	}
	slices.Sort(problems)
	return problems
}

// ways counts the paths on which a deletion cascades from one table to another.
func ways(tables map[string]table, to, from string) int {
	n := 0
	for _, parent := range tables[to].cascade {
		if parent == from {
			n++
		} else {
			n += ways(tables, parent, from)
		}
	}
	return n
}

func partsOf(tokens []string) [][]string {
	var parts [][]string
	var part []string
	depth := 0
	for _, t := range tokens {
		switch {
		case t == "(":
			depth++
		case t == ")":
			depth--
		case t == "," && depth == 0:
			parts, part = append(parts, part), nil
			continue
		}
		part = append(part, t)
	}
	return append(parts, part)
}

func bytesOf(kind, size string) int {
	n := 8
	switch {
	case strings.EqualFold(size, "MAX"):
		return -1
	case size != "":
		fmt.Sscan(size, &n)
		if strings.EqualFold(kind, "NVARCHAR") {
			n *= 2
		}
	}
	return n
}

func checkKey(name string, on table, columns string, most int) []string {
	total := 0
	for column := range strings.SplitSeq(columns, ",") {
		column = strings.ToLower(strings.Fields(column)[0])
		size, ok := on.columns[column]
		switch {
		case !ok:
			return []string{fmt.Sprintf("key of %s: no column %s", name, column)}
		case size < 0:
			return []string{fmt.Sprintf("key of %s: column %s has no limit", name, column)}
		}
		total += size
	}
	if total > most {
		return []string{fmt.Sprintf("key of %s: %d bytes, at most %d", name, total, most)}
	}
	return nil
}

// TestCheckTSQL requires that the checker refuses invalid batches and accepts valid ones.
func TestCheckTSQL(t *testing.T) {
	for _, bad := range []string{
		"SELECT [id] FROM [chats] LIMIT 1",
		"DELETE FROM [chats] RETURNING [id]",
		"INSERT INTO [a] VALUES (1) ON CONFLICT DO NOTHING",
		"INSERT OR IGNORE INTO [a] VALUES (1)",
		"SELECT [a]::BIGINT FROM [b]",
		"CREATE TABLE [a] ([b] BOOLEAN)",
		"SELECT [a] FROM [b] WHERE [c] = TRUE",
		"CREATE TABLE [a] ([b] JSONB)",
		"CREATE TABLE [a] ([b] TEXT)",
		"SELECT NOW()",
		"SELECT [a] || [b] FROM [c]",
		"CREATE TABLE IF NOT EXISTS [a] ([b] INT)",
		"CREATE INDEX IF NOT EXISTS [i] ON [a] ([b])",
		"SELECT [a], COUNT(*) AS [n] FROM [b] GROUP BY 1",
		"SELECT [a], COUNT(*) AS [n] FROM [b] GROUP BY [a], 2",
		"SELECT [a] FROM (SELECT [a] FROM [b] ORDER BY [a]) x",
		"SELECT [a] FROM (SELECT COUNT(*) FROM [b]) x",
		"WITH [x] AS (SELECT [a] + 1 FROM [b]) SELECT * FROM [x]",
		"CREATE TABLE [a] ([b] NVARCHAR(MAX) NOT NULL PRIMARY KEY)",
		"CREATE TABLE [a] ([b] NVARCHAR(MAX)); CREATE INDEX [i] ON [a] ([b])",
		"CREATE TABLE [a] ([b] NVARCHAR(500) NOT NULL PRIMARY KEY)",
		"CREATE TABLE [a] ([b] NVARCHAR(450) NOT NULL, [c] NVARCHAR(450) NOT NULL, UNIQUE ([b], [c]))",
		"CREATE TABLE [a] ([b] NVARCHAR(450), [c] NVARCHAR(450)); CREATE INDEX [i] ON [a] ([b], [c])",
		"CREATE TABLE [p] ([i] INT PRIMARY KEY); CREATE TABLE [q] ([i] INT PRIMARY KEY REFERENCES [p] ([i]) ON DELETE CASCADE); " +
			"CREATE TABLE [r] ([a] INT REFERENCES [p] ([i]) ON DELETE CASCADE, [b] INT REFERENCES [q] ([i]) ON DELETE CASCADE)",
		"CREATE TABLE [p] ([i] INT PRIMARY KEY, [j] INT REFERENCES [p] ([i]) ON DELETE CASCADE, [k] INT REFERENCES [p] ([i]) ON DELETE CASCADE)",
		"MERGE [a] USING [b] ON 1 = 1 WHEN MATCHED THEN DELETE OUTPUT [x]",
		"UPDATE [a] SET [b] = 1 OUTPUT INSERTED.[b] FROM [c]",
		"SELECT [a] FROM [b] WITH (NOLOCK)",
		"SELECT [a] FROM [b] FOR UPDATE",
		"WITH RECURSIVE [x] AS (SELECT 1 AS [a]) SELECT [a] FROM [x]",
		"WITH [x] ([a]) AS (SELECT 1 UNION SELECT [a] FROM [x]) SELECT [a] FROM [x]",
		"SELECT EXISTS (SELECT 1 AS [a] FROM [b])",
		"SELECT [a] FROM [b] WHERE [c] = ?",
		"SELECT [a] FROM [b] WHERE [c] = $1",
		`SELECT "a" FROM [b]`,
		"SELECT [a] FROM [b] WHERE ([c], [d]) IN (SELECT [c], [d] FROM [e])",
		"SELECT [a] FROM [b] OFFSET 0 ROWS",
		"SELECT [a] FROM [b] ORDER BY [a] OFFSET @p1",
		"SELECT STRING_AGG([a], '') AS [x] FROM [b]",
		"SELECT [a] FROM [b] WHERE [c] IN (" + strings.TrimSuffix(numbered("@p%d, ", 2101), ", ") + ")",
		"INSERT INTO [a] VALUES " + strings.TrimSuffix(numbered("(%d), ", 1001), ", "),
	} {
		require.NotEmpty(t, checkTSQL(bad), bad)
	}
	for _, good := range []string{
		"SELECT [limit], [text] FROM [boolean] WHERE [a] = 'LIMIT ? :: || NOW()' -- LIMIT",
		"SELECT [a] FROM [b] ORDER BY [a] OFFSET @p2 ROWS FETCH NEXT @p1 ROWS ONLY",
		"WITH [x] ([a]) AS (SELECT 1 UNION ALL SELECT [a] + 1 FROM [x] WHERE [a] < @p1) SELECT [a] FROM [x] ORDER BY [a] OPTION (MAXRECURSION 0)",
		"SELECT [a], COUNT(*) AS [n] FROM [b] WHERE [a] IN (@p1, @p2) GROUP BY [a]",
		"IF OBJECT_ID('a', 'U') IS NULL BEGIN CREATE TABLE [a] ([b] NVARCHAR(255) NOT NULL PRIMARY KEY, [c] NVARCHAR(MAX)); END;",
	} {
		require.Empty(t, checkTSQL(good), good)
	}
}

func numbered(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}
