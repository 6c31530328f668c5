package deps

import (
	"encoding/hex"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const format = "docs/format.md"

// Every magic in the code is in the file format, and every letter of a table of the index is a row there.
func TestFormatNamesMagicsAndTables(t *testing.T) {
	document := read(t, format)
	magic := regexp.MustCompile(`^LIN[A-Z]{5}$`)
	var magics, tables []string
	constants(t, func(name string, value *ast.BasicLit) {
		text, err := strconv.Unquote(value.Value)
		require.NoError(t, err)
		switch {
		case value.Kind == token.STRING && magic.MatchString(text):
			magics = append(magics, text)
		case value.Kind == token.CHAR && regexp.MustCompile(`^Table[A-Z]`).MatchString(name):
			tables = append(tables, text)
		}
	})
	require.NotEmpty(t, magics)
	for _, m := range magics {
		require.Contains(t, document, "`"+m+"`")
	}
	var rows []string
	for _, m := range regexp.MustCompile(`(?m)^\| ([A-Za-z]) \|`).FindAllStringSubmatch(section(t, document, "Index"), -1) {
		rows = append(rows, m[1])
	}
	slices.Sort(tables)
	slices.Sort(rows)
	require.Equal(t, tables, slices.Compact(rows))
}

// A section that names goldens names files that exist, and names all of the packages whose bytes it describes.
func TestFormatNamesGoldens(t *testing.T) {
	document := read(t, format)
	named := make(map[string]bool)
	for _, list := range regexp.MustCompile("goldens? ((?:(?:, | and )?`[^`]+`)+)").FindAllStringSubmatch(document, -1) {
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(list[1], -1) {
			named[name[1]] = true
		}
	}
	found := make(map[string]bool)
	for _, dir := range []string{"content", "structure", "internal/journal", "internal/index", "internal/sealed", "internal/pack", "lineage/bundle"} {
		files, err := filepath.Glob(filepath.Join(root, dir, "testdata", "*"))
		require.NoError(t, err)
		for _, file := range files {
			name := strings.TrimSuffix(filepath.Base(file), ".golden")
			pattern := regexp.MustCompile(`^frame-.*$`).ReplaceAllString(name, "frame-*")
			if regexp.MustCompile(`\.(golden|bundle|inventory)$`).MatchString(file) {
				found[pattern] = true
			}
		}
	}
	require.Equal(t, found, named)
}

// The tables of headers in the file format agree with the golden files: fields follow each other without a gap, and magic
// and version are where the tables say.
func TestFormatOfSegmentHeaders(t *testing.T) {
	header := dumped(t, "internal/journal/testdata/header.golden")
	rows := regexp.MustCompile(`(?m)^\| (\d+) \| (\d+) \| (.*) \|$`).FindAllStringSubmatch(section(t, read(t, format), "Segment header"), -1)
	next := 0
	for _, row := range rows {
		offset, err := strconv.Atoi(row[1])
		require.NoError(t, err)
		size, err := strconv.Atoi(row[2])
		require.NoError(t, err)
		require.Equal(t, next, offset, row[0])
		next += size
		field := header[offset:next]
		if m := regexp.MustCompile("^magic `(.*)`$").FindStringSubmatch(row[3]); m != nil {
			require.Equal(t, m[1], string(field))
		}
		if m := regexp.MustCompile(`^format version, (\d+)\.`).FindStringSubmatch(row[3]); m != nil {
			require.Equal(t, m[1], strconv.Itoa(int(field[0])))
		}
	}
	require.Equal(t, len(header), next)
}

// The version of packs in the file format is that of the golden files.
func TestFormatOfPackHeaders(t *testing.T) {
	m := regexp.MustCompile("\\| header, (\\d+) \\| magic `(.*?)`; format version (\\d+) \\(4\\)").FindStringSubmatch(read(t, format))
	require.NotNil(t, m)
	for _, name := range []string{"fast", "dense", "chapters"} {
		header := dumped(t, "internal/pack/testdata/"+name+".golden")
		require.Equal(t, m[2], string(header[:8]))
		require.Equal(t, m[3], strconv.Itoa(int(header[8])))
	}
}

// The version of bundles in the file format is that of the golden file.
func TestFormatOfBundleHeaders(t *testing.T) {
	bundle := read(t, "lineage/bundle/testdata/store.bundle")
	m := regexp.MustCompile("(?s)\\| 0 \\| magic `(LINEAGEB)` \\|\n\\| 8 \\| 4 bytes: format version, (\\d+)\\.").FindStringSubmatch(read(t, format))
	require.NotNil(t, m)
	require.Equal(t, m[1], bundle[:8])
	require.Equal(t, m[2], strconv.Itoa(int(bundle[8])))
}

// constants calls f for each constant of the module's packages whose value is a literal.
func constants(t *testing.T, f func(name string, value *ast.BasicLit)) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok {
				for i, value := range spec.Values {
					if lit, ok := value.(*ast.BasicLit); ok && (lit.Kind == token.STRING || lit.Kind == token.CHAR) {
						f(spec.Names[i].Name, lit)
					}
				}
			}
			return true
		})
		return nil
	}))
}

// section returns the part of a document under a heading, up to the next heading of its level or above.
func section(t *testing.T, document, heading string) string {
	t.Helper()
	at := regexp.MustCompile(`(?m)^(#+) ` + regexp.QuoteMeta(heading) + `\n`).FindStringSubmatchIndex(document)
	require.NotNil(t, at, heading)
	level := at[3] - at[2]
	rest := document[at[1]:]
	if end := regexp.MustCompile(`(?m)^#{1,` + strconv.Itoa(level) + `} `).FindStringIndex(rest); end != nil {
		rest = rest[:end[0]]
	}
	return rest
}

// dumped returns the bytes of a golden file that is a hex dump.
func dumped(t *testing.T, path string) []byte {
	t.Helper()
	var b []byte
	for line := range strings.Lines(read(t, path)) {
		if len(line) < 58 {
			continue
		}
		row, err := hex.DecodeString(strings.ReplaceAll(line[10:58], " ", ""))
		require.NoError(t, err)
		b = append(b, row...)
	}
	return b
}
