package history

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
)

// A narrow terminal leaves out columns before names are cut, and a wide one shows no wider table than any other.
func TestFitted(t *testing.T) {
	heads := []string{"MODEL", "REQUESTS", "CACHED", "WRITTEN"}
	const name = "a-model-with-a-name-of-forty-characters-"
	for _, c := range []struct {
		terminal, name int // the width left for the name
	}{{0, 40}, {1000, 40}, {67, 40}, {50, 40}, {49, 39}, {30, 20}, {10, 6}} {
		rows := [][]screen.Cell{{{Text: name}, {Text: "1"}, {Text: "2"}, {Text: "3"}}}
		cut := fitted(heads, rows, 1, c.terminal)[0]
		require.Equal(t, c.name, screen.Width(cut[0].Text), "terminal of %d", c.terminal)
		require.Equal(t, "3", cut[3].Text)
	}
	long := [][]screen.Cell{{{Text: name + name + name}, {Text: "1"}, {Text: "2"}, {Text: "3"}}}
	require.Equal(t, usageWidth-len("  REQUESTS  CACHED  WRITTEN"), screen.Width(fitted(heads, long, 1, 1000)[0][0].Text))
}

// Where no answer matches, the note does not speak of the whole store, and says what may be wrong with the flags.
func TestNoteOfNoUsage(t *testing.T) {
	at := func(text string) (f app.TimeFlag) {
		require.NoError(t, f.Set(text))
		return f
	}
	for want, o := range map[string]*usageOptions{
		"no answer in the store states what it used":                                               {},
		"no such answer states what it used":                                                       {since: at("2030-01-01 18:00"), agent: "pi", project: "/p"},
		"no such answer states what it used; --until is not after --since":                         {since: at("2026-01-02"), until: at("2026-01-01T18:00")},
		"no such answer states what it used; the names of agents are claude-code, codex, opencode": {agent: "claude"},
	} {
		require.True(t, strings.HasPrefix(o.none(), want), o.none())
	}
}
