package deps

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The README's program is the first example of the documentation, with the imports it needs.
func TestReadmeShowsTheExample(t *testing.T) {
	example := functionBody(t, read(t, "lineage/example_test.go"), "Example")
	example, output, found := strings.Cut(example, "\t// Output:\n")
	require.True(t, found)
	blocks := fenced(read(t, "README.md"))
	program := slices.IndexFunc(blocks, func(b block) bool { return b.language == "go" })
	require.NotEqual(t, -1, program)
	require.Equal(t, example, functionBody(t, blocks[program].text, "main"))
	require.Equal(t, strings.ReplaceAll(output, "\t// ", ""), blocks[program+2].text)
}

// Following the README leads from an empty folder to a program that runs, and so does the package documentation.
func TestProgramsOfTheDocumentationRun(t *testing.T) {
	module, err := filepath.Abs(root)
	require.NoError(t, err)
	beside := t.TempDir()
	require.NoError(t, os.Symlink(module, filepath.Join(beside, "lineage")))
	for _, document := range []string{"docs/sql.md", "README.md"} {
		blocks := fenced(read(t, document))
		program := slices.IndexFunc(blocks, isProgram)
		require.Positive(t, program, document)
		setup, build, output := blocks[program-1].text, blocks[program+1].text, blocks[program+2].text
		require.Equal(t, output, follow(t, beside, setup, blocks[program].text, build), document)
		if document == "README.md" {
			require.Equal(t, "The fork has 2 messages.\n", follow(t, beside, setup, documentedProgram(t), build))
		}
	}
}

func isProgram(b block) bool {
	return b.language == "go" && strings.HasPrefix(b.text, "package main\n")
}

// The program for ADK is the example of its module, whose tests run it.
func TestAdaptersShowTheExample(t *testing.T) {
	example := functionBody(t, read(t, "adapters/adk/example_test.go"), "Example")
	example, output, found := strings.Cut(example, "\t// Output:\n")
	require.True(t, found)
	blocks := fenced(read(t, "docs/adapters.md"))
	program := slices.IndexFunc(blocks, isProgram)
	require.NotEqual(t, -1, program)
	require.Equal(t, example, functionBody(t, blocks[program].text, "main"))
	require.Equal(t, strings.ReplaceAll(output, "\t// ", ""), blocks[program+1].text)
}

// follow runs the commands of setup, which make a folder and enter it, saves program as main.go, runs the commands of
// build, removes the folder and returns what was printed. Modules come from the module cache where it has them.
func follow(t *testing.T, beside, setup, program, build string) string {
	t.Helper()
	cache, err := exec.Command("go", "env", "GOMODCACHE", "GOPROXY").Output()
	require.NoError(t, err)
	dir, proxies, _ := strings.Cut(strings.TrimSpace(string(cache)), "\n")
	script := "set -eu\n" + setup + "cat >main.go <<'END OF PROGRAM'\n" + program + "END OF PROGRAM\n" + build + "rm -r \"$PWD\"\n"
	c := exec.Command("bash", "-c", script)
	c.Dir = beside
	c.Env = append(os.Environ(), "GOPROXY=file://"+filepath.ToSlash(dir)+"/cache/download,"+proxies, "GOSUMDB=off", "GOWORK=off",
		"GOFLAGS=-trimpath") // so that the build cache serves every folder
	var errs strings.Builder
	c.Stderr = &errs
	printed, err := c.Output()
	require.NoError(t, err, errs.String())
	return string(printed)
}

// documentedProgram returns the program in the documentation of package lineage.
func documentedProgram(t *testing.T) string {
	t.Helper()
	var program strings.Builder
	for line := range strings.Lines(read(t, "lineage/doc.go")) {
		code, found := strings.CutPrefix(line, "//\t")
		switch {
		case found:
			program.WriteString(code)
		case line == "//\n" && program.Len() > 0:
			program.WriteString("\n")
		case program.Len() > 0:
			return program.String()
		}
	}
	t.Fatal("the documentation of package lineage has no program")
	return ""
}

// A block is a fenced block of a document.
type block struct{ language, text string }

func fenced(document string) []block {
	var blocks []block
	for _, m := range regexp.MustCompile("(?sm)^```(\\w*)\n(.*?)^```$").FindAllStringSubmatch(document, -1) {
		blocks = append(blocks, block{m[1], m[2]})
	}
	return blocks
}

// functionBody returns the body of a function as it is written.
func functionBody(t *testing.T, src, name string) string {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", src, 0)
	require.NoError(t, err)
	i := slices.IndexFunc(file.Decls, func(d ast.Decl) bool {
		f, ok := d.(*ast.FuncDecl)
		return ok && f.Name.Name == name
	})
	require.NotEqual(t, -1, i)
	body := file.Decls[i].(*ast.FuncDecl).Body
	return src[set.Position(body.Lbrace).Offset+2 : set.Position(body.Rbrace).Offset]
}

// The documents name tests as proof; all of them exist.
func TestDocumentsNameTestsThatExist(t *testing.T) {
	tests := declaredTests(t)
	for _, document := range documents(t) {
		named := regexp.MustCompile(`\b(?:Test|Fuzz|Benchmark)[A-Z]\w*`).FindAllString(read(t, document), -1)
		for _, name := range named {
			require.True(t, tests[name], "%s names %s", document, name)
		}
	}
}

// Every link of a document that is not an address leads to a file of the repository, and to a heading in it.
func TestLinksOfDocuments(t *testing.T) {
	links := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for _, document := range documents(t) {
		for _, link := range links.FindAllStringSubmatch(outsideCode(read(t, document)), -1) {
			if strings.Contains(link[1], "://") {
				continue
			}
			path, anchor, found := strings.Cut(link[1], "#")
			target := document
			if path != "" {
				target = filepath.Join(filepath.Dir(document), path)
			}
			require.FileExists(t, filepath.Join(root, target), "%s links to %s", document, link[1])
			if found {
				require.Contains(t, anchors(read(t, target)), anchor, "%s links to %s", document, link[1])
			}
		}
	}
}

// The README leads to every document.
func TestReadmeListsTheDocuments(t *testing.T) {
	readme := read(t, "README.md")
	for _, document := range documents(t) {
		if document != "README.md" {
			require.Contains(t, readme, "]("+filepath.ToSlash(document)+")")
		}
	}
}

// The table of packages in docs/contributing.md has every package, and no other.
func TestPackagesAreDescribed(t *testing.T) {
	var want, got []string
	for _, r := range importRules {
		path := r.path
		if r.tree {
			path += "/lineage"
		}
		want = append(want, path)
	}
	for _, row := range regexp.MustCompile("(?m)^\\| (`.*`) \\|").FindAllStringSubmatch(section(t, read(t, "docs/contributing.md"), "Packages"), -1) {
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			got = append(got, name[1])
		}
	}
	require.ElementsMatch(t, want, got)
}

// documents returns the paths of the README and of the files in docs.
func documents(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for i, path := range paths {
		paths[i], err = filepath.Rel(root, path)
		require.NoError(t, err)
	}
	return append(paths, "README.md")
}

// anchors returns the anchors that a host of repositories gives the headings of a document.
func anchors(document string) []string {
	var all []string
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(outsideCode(document), -1) {
		kept := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(m[1]), "")
		all = append(all, strings.ReplaceAll(kept, " ", "-"))
	}
	return all
}

// outsideCode returns a document without its fenced blocks.
func outsideCode(document string) string {
	return regexp.MustCompile("(?sm)^```.*?^```$").ReplaceAllString(document, "")
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
