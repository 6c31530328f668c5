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
	// Forks branch off here, and Next continues the line; nil where that ends.
	Forks []Fork
	Next  *Node
}

// Fork is a part of a tree beside the main line.
type Fork struct {
	// Points is how many points it has.
	Points func() uint64
	// Begin returns the first of them. It is called only if the fork is drawn.
	Begin func() (*Node, error)
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
	if err := d.line(root, "", 0); err != nil {
		return err
	}
	_, err := io.WriteString(to.W, d.b.String())
	return err
}

type drawing struct {
	to     *screen.Screen
	limits Limits
	b      strings.Builder
}

// line draws a node, the main line that continues it, and the forks between.
func (d *drawing) line(n *Node, prefix string, depth int) error {
	for ; n != nil; n = n.Next {
		d.point(n, prefix)
		for i, fork := range n.Forks {
			if d.limits.Forks > 0 && i == d.limits.Forks {
				d.note(prefix, fmt.Sprintf("%d more forks", len(n.Forks)-i))
				break
			}
			if d.limits.Depth > 0 && depth == d.limits.Depth {
				d.note(prefix, fmt.Sprintf("%s deeper", screen.Plural(int64(fork.Points()), "message")))
				continue
			}
			begin, err := fork.Begin()
			if err != nil {
				return err
			}
			d.b.WriteString(d.lines(prefix+"├─╮") + "\n")
			if err := d.line(begin, prefix+"│ ", depth+1); err != nil {
				return err
			}
		}
	}
	return nil
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
