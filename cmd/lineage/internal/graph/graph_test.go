package graph

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
)

func node(text string, children ...*Node) *Node {
	return &Node{Head: text, HeadWidth: len(text), Children: children}
}

func draw(t *testing.T, root *Node, width int, limits Limits) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, Draw(&screen.Screen{W: screen.NewFilter(&out), Width: width}, root, limits))
	return out.String()
}

func TestDrawShowsForksBesideTheMainLine(t *testing.T) {
	leaf := node("5")
	leaf.Current, leaf.Labels = true, "main *"
	root := node("1", node("2",
		node("3a", node("4x"), node("4y", &Node{Folded: 7}, node("9"))),
		node("3b"),
		node("3", node("4", leaf))))
	leaf.Children = []*Node{node("5a"), nil}
	require.Equal(t, strings.TrimPrefix(`
● 1
● 2
├─╮
│ ● 3a
│ ├─╮
│ │ ● 4x
│ ● 4y
│ ├─╮
│ │ ┊ 7 messages
│ ● 9
├─╮
│ ● 3b
● 3
● 4
◉ 5  main *
├─╮
│ ● 5a
`, "\n"), draw(t, root, 0, Limits{}))
}

func TestDrawKeepsToLimitsAndWidth(t *testing.T) {
	deep := node("main")
	for range 50 {
		deep = node("x", deep, node("y"))
	}
	out := draw(t, deep, 0, Limits{Depth: 3})
	require.Contains(t, out, "… 93 messages deeper")
	require.Less(t, strings.Count(out, "\n"), 20)

	wide := node("root")
	for range 100 {
		wide.Children = append(wide.Children, node("fork"))
	}
	out = draw(t, wide, 0, Limits{Forks: 5})
	require.Contains(t, out, "├╌ … 94 more forks\n● fork\n")

	long := node("head")
	long.Text, long.Labels = strings.Repeat("word ", 50), (&screen.Screen{Colour: true}).Paint(screen.Green, "main")
	out = draw(t, long, 40, Limits{})
	require.Contains(t, out, "\x1b[32mmain\x1b[0m")
	out = strings.NewReplacer("\x1b[32m", "", "\x1b[0m", "", "\n", "").Replace(out)
	require.Equal(t, 40, screen.Width(out))
}
