package graph

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
)

// node returns a node that next follows, which may be nil, and forks beside it.
func node(text string, next *Node, forks ...*Node) *Node {
	n := &Node{Head: text, HeadWidth: len(text), Next: next}
	for _, fork := range forks {
		n.Forks = append(n.Forks, Fork{
			Points: func() uint64 { return points(fork) },
			Begin:  func() (*Node, error) { return fork, nil },
		})
	}
	return n
}

func points(n *Node) (total uint64) {
	for ; n != nil; n = n.Next {
		total += uint64(max(n.Folded, 1))
		for _, fork := range n.Forks {
			total += fork.Points()
		}
	}
	return total
}

func draw(t *testing.T, root *Node, width int, limits Limits) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, Draw(&screen.Screen{W: screen.NewFilter(&out), Width: width}, root, limits))
	return out.String()
}

func TestDrawShowsForksBesideTheMainLine(t *testing.T) {
	leaf := node("5", nil, node("5a", nil))
	leaf.Current, leaf.Labels = true, "main *"
	root := node("1", node("2", node("3", node("4", leaf)),
		node("3a", node("4y", node("9", nil), &Node{Folded: 7}), node("4x", nil)),
		node("3b", nil)))
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
	deep := node("main", nil)
	for range 50 {
		deep = node("x", node("y", nil), deep)
	}
	out := draw(t, deep, 0, Limits{Depth: 3})
	require.Contains(t, out, "… 93 messages deeper")
	require.Less(t, strings.Count(out, "\n"), 20)

	wide := node("root", node("fork", nil), slices.Repeat([]*Node{node("fork", nil)}, 99)...)
	out = draw(t, wide, 0, Limits{Forks: 5})
	require.Contains(t, out, "├╌ … 94 more forks\n● fork\n")

	long := node("head", nil)
	long.Text, long.Labels = strings.Repeat("word ", 50), (&screen.Screen{Colour: true}).Paint(screen.Green, "main")
	out = draw(t, long, 40, Limits{})
	require.Contains(t, out, "\x1b[32mmain\x1b[0m")
	out = strings.NewReplacer("\x1b[32m", "", "\x1b[0m", "", "\n", "").Replace(out)
	require.Equal(t, 40, screen.Width(out))
}

func TestForksThatCannotBeReadEndTheDrawing(t *testing.T) {
	lost := errors.New("lost")
	root := node("root", nil)
	root.Forks = []Fork{{Begin: func() (*Node, error) { return nil, lost }}}
	require.ErrorIs(t, Draw(&screen.Screen{W: screen.NewFilter(io.Discard)}, root, Limits{}), lost)
}
