package deps

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// unwanted finds what ties a file to the machine it was written on: directories of that machine, and the hosts
// that packages were fetched from. The words are put together here, so that this file passes its own test.
var unwanted = regexp.MustCompile(strings.Join([]string{
	`(?:^|[^\w./~-])/` + `work\b`,
	`\.\./` + `shared\b`,
	host("proxy", "golang", "org"),
	host("sum", "golang", "org"),
	host("goproxy", "(?:io|cn)"),
	host("registry", "npmjs", "org"),
	host("registry", "yarnpkg", "com"),
	host("pypi", "org"),
	host("files", "pythonhosted", "org"),
	host("crates", "io"),
	host("rubygems", "org"),
	host("repo", "maven", "apache", "org"),
	host("registry", "hub", "docker", "com"),
}, "|"))

func host(labels ...string) string {
	return `\b` + strings.Join(labels, `\.`) + `\b`
}

// Test data is other people's text, so it may say anything.
func TestFilesNameNoMachine(t *testing.T) {
	skipped := []string{".git", ".bin", "testdata"}
	seen := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains(skipped, d.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || d.Name() == ".git" { // in a worktree .git is a file
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		seen++
		for i, line := range strings.Split(string(text), "\n") {
			if match := unwanted.FindString(line); match != "" {
				t.Errorf("%s:%d mentions %q", path, i+1, match)
			}
		}
		return nil
	})
	require.NoError(t, err)
	require.NotZero(t, seen)
}

func TestUnwanted(t *testing.T) {
	tests := []struct {
		text string
		want bool
	}{
		{"cd /" + "work/main", true},
		{"`/" + "work`", true},
		{"see .." + "/shared/design.md", true},
		{"https://" + "proxy" + ".golang.org/x", true},
		{"GOPROXY=https://" + "goproxy" + ".cn", true},
		{"https://example.com/work/x", false},
		{"a/work/b, ./work, work/", false},
		{"/workspace", false},
		{"https://pkg.go.dev/golang.org/x/sys", false},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			require.Equal(t, tt.want, unwanted.MatchString(tt.text))
		})
	}
}
