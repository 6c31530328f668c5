//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// cloned returns a folder of the clone of a repository that an environment variable names. The suites there are in no package, so the
// test is skipped without it.
func cloned(t *testing.T, variable, repository, folder string) string {
	t.Helper()
	clone := os.Getenv(variable)
	if clone == "" {
		t.Skipf("NOT RUN with the suites of %s: no package has them; %s names a clone", repository, variable)
	}
	return filepath.Join(clone, folder)
}

// TestSuiteOfClaudeAgent runs the suite of the repository of the Claude Agent SDK for session stores, unmodified.
func TestSuiteOfClaudeAgent(t *testing.T) {
	from := cloned(t, "LINEAGE_TEST_CLAUDE_AGENT_CLONE", "github.com/anthropics/claude-agent-sdk-typescript", filepath.Join("examples", "session-stores", "shared"))
	js := newJavaScript(t)
	suite, err := os.ReadFile(filepath.Join(from, "conformance.ts"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(js.client, "suites", "conformance.ts"), suite, 0o666))
	require.Equal(t, map[string]int{"claude-agent.suite": 13}, js.vitest(t, "--config", "suites/vitest.config.js"))
}

// TestSuitesOfDeepAgents runs the suites of the repository of deepagents that work on a store, unmodified, with ours for its own. Those of
// the kinds of its own storage, as its tables, are not among them.
func TestSuitesOfDeepAgents(t *testing.T) {
	from := cloned(t, "LINEAGE_TEST_DEEPAGENTS_CLONE", "github.com/JanuaryLabs/deepagents, release/0.29.1", filepath.Join("packages", "context"))
	js := newJavaScript(t)
	suites := filepath.Join(js.dir, "suites")
	for _, name := range []string{"src", "test"} {
		require.NoError(t, os.CopyFS(filepath.Join(suites, name), os.DirFS(filepath.Join(from, name))))
	}
	// What they import has our stores; all else is what the package is used with.
	modules := filepath.Join(suites, "node_modules")
	modulesIn(t, modules, filepath.Dir(js.deepagents))
	require.NoError(t, os.Remove(filepath.Join(modules, "@deepagents")))
	context := filepath.Join(modules, "@deepagents", "context")
	require.NoError(t, os.MkdirAll(context, 0o777))
	require.NoError(t, os.WriteFile(filepath.Join(context, "package.json"), []byte(`{"type":"module","exports":"./index.js"}`), 0o666))
	require.NoError(t, os.Symlink(filepath.Join(js.client, "suites", "deepagents.js"), filepath.Join(context, "index.js")))

	passed := map[string]int{
		"src/lib/chat.test.ts":                   13,
		"test/resolve-codec.integration.test.ts": 3,
		"test/sqlite/branching.test.ts":          23,
		"test/sqlite/delete-chat.test.ts":        23,
		"test/sqlite/fts.test.ts":                5,
		"test/sqlite/user-chats.test.ts":         37,
	}
	failed := map[string]string{
		"User Chat Management > userId Immutability & Validation > should not change userId when upserting existing chat with different userId": "a chat of another user is refused",
		"User Chat Management > userId Immutability & Validation > should preserve userId when ContextEngine reconnects to existing chat":       "a chat of another user is refused",
		"Message Upsert > should update existing message with same ID":                                                                          "a message that others follow is immutable",
		"Full-Text Search > FTS Index Updates > should update FTS index on upsert":                                                              "what a message was stays in the chat, and is found",
	}
	report := filepath.Join(js.dir, "report.json")
	args := []string{"--no-warnings", "--experimental-strip-types", "--test-force-exit", "--test-reporter", filepath.Join(js.client, "suites", "reporter.js"), "--test-reporter-destination", report, filepath.Join(js.client, "suites", "files.js")}
	for name := range passed {
		args = append(args, filepath.Join(suites, name))
	}
	c := exec.Command(js.node, args...)
	c.Env = js.env
	var output bytes.Buffer
	c.Stdout, c.Stderr = &output, &output
	_ = c.Run() // some fail, as they are expected to
	got := make(map[string]int)
	for _, f := range readTestedJS(t, report, &output) {
		name, err := filepath.Rel(suites, f.Name)
		require.NoError(t, err)
		for _, one := range f.Tests {
			reason, expected := failed[one.Name]
			switch {
			case one.Status == "passed" && !expected:
				got[name]++
			case one.Status == "passed":
				t.Errorf("%s: %s: passed, which was not expected: %s", name, one.Name, reason)
			case !expected || one.Status != "failed":
				t.Errorf("%s: %s: %s\n%s", name, one.Name, one.Status, one.Failures)
			}
			delete(failed, one.Name)
		}
	}
	require.Empty(t, failed, "these did not run")
	require.Equal(t, passed, got)
}
