package main

import (
	"os"
	"path/filepath"
	"testing"
)

// A type error is found in a file for another system, in its tests too, and not in files that the system leaves out.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":            "module x\n\ngo 1.26\n",
		"x.go":              "package x\n\nconst n = 1\n",
		"x_windows.go":      "package x\n\nvar text string = n\n",
		"x_darwin_test.go":  "package x\n\nvar number int = unknown\n",
		"y/y_linux_test.go": "package y\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for target, want := range map[string]bool{"linux": false, "windows": true, "darwin": true} {
		t.Setenv("GOOS", target)
		t.Setenv("GOARCH", "amd64")
		n, err := check(dir, "./...")
		if err != nil {
			t.Fatal(err)
		}
		if (n > 0) != want {
			t.Errorf("%s: %d errors", target, n)
		}
	}
}
