// Package graph draws trees with box characters, the way a history reads: the main
// line goes straight down, and forks are drawn to its right.
package graph

import (
	"fmt"
	"io"
	"strings"

	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
)

// Node is a point of a tree.
type Node struct {
	// Head is always shown, Text is cut to the width, and Labels are the names
	// that point here. Head and Labels may be painted.
	Head, Text, Labels string
	// HeadWidth is the width of Head in columns.
	HeadWidth int
	// Folded is how many points are left out here; such a node has nothing else.
	Folded int
	// Current marks the point where one is.
	Current bool
	// Children are what follows; the last is the main line, nil where that ends here.
	Children []*Node
}

// Limits of the drawing.
type Limits struct {
	// Depth is how deep forks of forks are drawn, and Forks how many at one point.
	// 0 is any number.
	Depth, Forks int
}

// Draw writes a tree.
func Draw(to *screen.Screen, root *Node, limits Limits) error {
	d := &drawing{to: to, limits: limits}
	d.line(root, "", 0)
	_, err := io.WriteString(to.W, d.b.String())
	return err
}

type drawing struct {
	to     *screen.Screen
	limits Limits
	b      strings.Builder
}

// line draws a node, the main line that continues it, and the forks between.
func (d *drawing) line(n *Node, prefix string, depth int) {
	for n != nil {
		d.point(n, prefix)
		last := len(n.Children) - 1
		if last < 0 {
			return
		}
		for i, fork := range n.Children[:last] {
			if d.limits.Forks > 0 && i == d.limits.Forks {
				d.note(prefix, fmt.Sprintf("%d more forks", last-i))
				break
			}
			if d.limits.Depth > 0 && depth == d.limits.Depth {
				d.note(prefix, fmt.Sprintf("%s deeper", screen.Plural(int64(count(fork)), "message")))
				continue
			}
			d.b.WriteString(d.lines(prefix+"├─╮") + "\n")
			d.line(fork, prefix+"│ ", depth+1)
		}
		n = n.Children[last]
	}
}

func (d *drawing) point(n *Node, prefix string) {
	d.b.WriteString(d.lines(prefix))
	if n.Folded > 0 {
		d.b.WriteString(d.lines("┊ ") + d.to.Paint(screen.Dim, screen.Plural(int64(n.Folded), "message")) + "\n")
		return
	}
	mark, style := "●", screen.Plain
	if n.Current {
		mark, style = "◉", screen.Green+";"+screen.Bold
	}
	d.b.WriteString(d.to.Paint(style, mark) + " " + n.Head)
	if n.Text != "" {
		width := 0
		if d.to.Width > 0 {
			used := screen.Width(prefix) + 2 + n.HeadWidth + 2
			if n.Labels != "" {
				used += 2 + screen.Width(screen.Unpaint(n.Labels))
			}
			width = max(d.to.Width-used, 12)
		}
		d.b.WriteString("  " + screen.Cut(n.Text, width))
	}
	if n.Labels != "" {
		d.b.WriteString("  " + n.Labels)
	}
	d.b.WriteByte('\n')
}

func (d *drawing) note(prefix, text string) {
	d.b.WriteString(d.lines(prefix+"├╌ ") + d.to.Paint(screen.Dim, "… "+text) + "\n")
}

func (d *drawing) lines(text string) string { return d.to.Paint(screen.Blue, text) }

// count returns how many points a tree has.
func count(n *Node) int {
	total, todo := 0, []*Node{n}
	for len(todo) > 0 {
		n := todo[len(todo)-1]
		if todo = todo[:len(todo)-1]; n != nil {
			todo = append(todo, n.Children...)
			total += max(n.Folded, 1)
		}
	}
	return total
}
