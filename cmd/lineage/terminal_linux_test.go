package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
)

// A terminal shows the first of many forks. A pipe gets all of them.
func TestManyForksAtATerminal(t *testing.T) {
	dir := newStore(t)
	code, shows := runAt(t, nil, "fork", "--count", "30", "--store", dir)
	require.Equal(t, 0, code, shows)
	require.Contains(t, shows, "… and 10 more; 'lineage contexts' and --json list them")
	require.Len(t, regexp.MustCompile(`(?m)^[0-9a-f-]{36}\r?$`).FindAllString(shows, -1), 20, shows)
	require.Len(t, strings.Fields(runLine(t.Context(), "fork", "--count", "30", "--store", dir).out), 30)
	code, shows = runAt(t, nil, "fork", "--count", "30", "--json", "--store", dir)
	require.Equal(t, 0, code, shows)
	require.Equal(t, 30, strings.Count(shows, `"type":"context"`))
}

// A terminal shows a folder with ~ for the home directory. A pipe gets the path.
func TestFoldersAtATerminal(t *testing.T) {
	home := t.TempDir()
	sessions := filepath.Join(home, ".pi", "agent", "sessions")
	require.NoError(t, os.MkdirAll(sessions, 0o700))
	dir := newStore(t)
	environment := func(name string) string {
		if name == "HOME" {
			return home
		}
		return ""
	}
	var out, errOut bytes.Buffer
	p := openPTY(t)
	require.Equal(t, 0, execute(t.Context(), app.New(p.File, p.File, p.File, environment), []string{"follow", "--list", "--store", dir}))
	shows := p.Close()
	require.Contains(t, shows, " ~/.pi/agent/sessions")
	require.NotContains(t, shows, sessions)
	require.Equal(t, 0, execute(t.Context(), app.New(strings.NewReader(""), &out, &errOut, environment), []string{"follow", "--list", "--store", dir}))
	require.Contains(t, out.String(), sessions)
}
