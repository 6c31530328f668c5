package conversation_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/conversation"
)

var update = flag.Bool("update", false, "write the golden files anew")

func requireGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

// feature: branches/formatted
func TestFormat(t *testing.T) {
	now := time.Date(2026, 1, 10, 8, 0, 0, 0, time.FixedZone("", 3600))
	s, err := lineage.Open(bg, t.TempDir(), lineage.Options{Durability: lineage.Normal, Now: func() time.Time { return now }})
	require.NoError(t, err)
	defer s.Close()
	c := open(t, s)
	later := func() { now = now.Add(time.Minute) }
	say(t, c, "a", "b", "c")
	later()
	fork(t, c, "Plan A")
	later()
	say(t, c, "d")
	later()
	fork(t, c, "Plan A, carefully")
	checkout(t, c, "plan-a")
	later()
	fork(t, c, "Plan A, quickly")
	checkout(t, c, "main")
	later()
	_, err = c.ForkFromMessage(bg, "Plan B", 1)
	require.NoError(t, err)
	later()
	_, err = c.CreateBranch(bg, "\x1b[2J", "red \x1b[31m, line\r\n, bell\a, \u202eright to left, \u2028, tab\t, \u0085, 東京, \"quoted\", a\\b", nil)
	require.NoError(t, err)
	later()
	_, err = c.CreateBranch(bg, "inner", "Inner", &conversation.From{Branch: "\x1b[2J"})
	require.NoError(t, err)
	checkout(t, c, "plan-a")

	branches, err := c.FormatBranches(bg)
	require.NoError(t, err)
	requireGolden(t, "branches", branches)
	tree, err := c.FormatTree(bg)
	require.NoError(t, err)
	requireGolden(t, "tree", tree)
}

func TestFormatNew(t *testing.T) {
	c := newConversation(t)
	tree, err := c.FormatTree(bg)
	require.NoError(t, err)
	require.Equal(t, "Main conversation [main] · 0 messages *\n", tree)
}
