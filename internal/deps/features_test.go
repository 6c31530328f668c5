package deps

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A feature is a line of features.txt: what a document asks for.
type feature struct {
	document, id, section, asked string
	open                         bool
}

func features(t *testing.T) (all []feature) {
	t.Helper()
	document := ""
	for line := range strings.Lines(read(t, "internal/deps/features.txt")) {
		line = strings.TrimSpace(line)
		fields := strings.Split(strings.TrimSuffix(line, " | open"), " | ")
		switch {
		case len(fields) == 3 && line[0] != '#':
			all = append(all, feature{document, fields[0], fields[1], fields[2], strings.HasSuffix(line, " | open")})
		case strings.HasPrefix(line, "# "):
			document = line[2:]
		default:
			require.Empty(t, line)
		}
	}
	return all
}

var (
	tagged   = regexp.MustCompile(`^\s*(?://|#) feature: (\S+)$`)
	function = regexp.MustCompile(`^func (?:\(\w+ \*\w+\) )?(\w+)\(`)
	subtest  = regexp.MustCompile(`^\s+(?:t\.Run\(|\{)("[^"]+")`)
)

// taggedTests returns the tests that are tagged with features, by feature. A tag stands in the comment above a test or
// a step of one, or in a script.
func taggedTests(t *testing.T, root string) map[string][]string {
	t.Helper()
	tests := make(map[string][]string)
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == ".bin"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, ".txtar"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		for id, names := range tagsOf(t, filepath.ToSlash(name), string(text)) {
			tests[id] = append(tests[id], names...)
		}
		return nil
	}))
	for _, names := range tests {
		slices.Sort(names)
	}
	return tests
}

// tagsOf returns the tests of one file by feature.
func tagsOf(t *testing.T, path, text string) map[string][]string {
	t.Helper()
	folder := path[:max(strings.LastIndexByte(path, '/'), 0)]
	tests := make(map[string][]string)
	inside := ""
	var waiting []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if m := tagged.FindStringSubmatch(line); m != nil {
			if strings.HasSuffix(path, ".txtar") {
				tests[m[1]] = append(tests[m[1]], path)
			} else {
				waiting = append(waiting, m[1])
			}
			continue
		}
		test := ""
		if m := function.FindStringSubmatch(line); m != nil {
			inside, test = m[1], m[1]
		} else if m := subtest.FindStringSubmatch(line); m != nil {
			test = inside + " " + m[1]
		} else if strings.HasPrefix(strings.TrimSpace(line), "//") {
			continue
		}
		for _, id := range waiting {
			require.NotEmpty(t, test, "%s: the tag %s is above no test", path, id)
			tests[id] = append(tests[id], folder+": "+test)
		}
		waiting = nil
	}
	require.Empty(t, waiting, path)
	return tests
}

// TestFeatures compares docs/features.md with the features and the tests that are tagged with them. LINEAGE_UPDATE_GOLDEN=1
// writes it.
func TestFeatures(t *testing.T) {
	tests := taggedTests(t, root)
	known := make(map[string]bool)
	document, open := "", 0
	var out strings.Builder
	all := features(t)
	for _, f := range all {
		require.False(t, known[f.id], "feature %s is there twice", f.id)
		known[f.id] = true
		if f.document != document {
			document = f.document
			fmt.Fprintf(&out, "\n## %s\n\n| section | what is asked | proved by |\n|---|---|---|\n", document)
		}
		proof := "**open**"
		if len(tests[f.id]) > 0 {
			proof = "`" + strings.Join(tests[f.id], "`, `") + "`"
		} else {
			open++
		}
		require.Equal(t, f.open, len(tests[f.id]) == 0, "feature %s: has tests, or \" | open\" behind it", f.id)
		fmt.Fprintf(&out, "| %s | %s | %s |\n", f.section, f.asked, proof)
	}
	for id, names := range tests {
		require.True(t, known[id], "%v: no feature has the id %s", names, id)
	}
	want := fmt.Sprintf("# Features\n\nWhat the five documents that this project implements ask for, and the tests that prove it. Made by `TestFeatures` from"+
		" `internal/deps/features.txt`\nand the tags of tests. Of %d features %d are open.\n", len(all), open) + out.String()
	if os.Getenv("LINEAGE_UPDATE_GOLDEN") != "" {
		require.NoError(t, os.WriteFile(filepath.Join(root, "docs", "features.md"), []byte(want), 0o644))
	}
	require.Equal(t, want, read(t, "docs/features.md"), "LINEAGE_UPDATE_GOLDEN=1 rewrites docs/features.md")
}

func TestTagsOf(t *testing.T) {
	tag := "// " + "feature: "
	program := "package p\n\n// TestA tests.\n//\n" + tag + "a/one\n" + tag + "a/two\nfunc TestA(t *testing.T) {\n\t" + tag + "a/three\n\tt.Run(\"step one\", func(t *testing.T) {})\n" +
		"\tfor range []row{\n\t\t" + tag + "a/one\n\t\t{\"row\", 1},\n\t}{}\n}\n"
	require.Equal(t, map[string][]string{
		"a/one": {"p: TestA", `p: TestA "row"`}, "a/two": {"p: TestA"}, "a/three": {`p: TestA "step one"`},
	}, tagsOf(t, "p/p_test.go", program))
	require.Equal(t, map[string][]string{"b/c": {"p: testB"}}, tagsOf(t, "p/p.go", tag+"b/c\nfunc (s *suite) testB(t *testing.T) {\n"))
	require.Equal(t, map[string][]string{"b/c": {"s/x.txtar"}}, tagsOf(t, "s/x.txtar", "# feature"+": b/c\nexec true\n"))
}
