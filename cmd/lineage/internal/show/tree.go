package show

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/lineage/graph"
)

// Limits of a drawing with folded parts.
const (
	maxForks = 12
	maxDepth = 12
	// shown is the number of messages shown at each end of a part without names.
	shown = 2
)

// Draw draws the forest below the title and the id of the thread, with box characters. The line of the active branch
// goes straight down, and forks are drawn to its right.
func (f *Forest) Draw(ctx context.Context, title, id string) error {
	f.Printf("%s  %s\n", f.Out.Paint(screen.Bold, title), f.Out.Paint(screen.Dim, "thread "+screen.Line(id)))
	if names := f.Labels[graph.Place{}]; len(names) > 0 {
		f.Printf("○ %s  %s\n", f.Out.Paint(screen.Dim, "no messages"), LabelText(f.App, names))
	}
	for l := range f.Lines() {
		f.digits = max(f.digits, len(fmt.Sprint(l.Before+l.Last)))
	}
	// The tree of the active branch comes last, where people look first.
	slices.SortStableFunc(f.Roots, func(a, b *graph.Line) int { return cmp.Compare(min(a.Main, 1), min(b.Main, 1)) })
	roots := f.Roots
	if !f.Full {
		roots = f.withoutRecords()
	}
	for i, root := range roots {
		if i > 0 {
			f.Printf("\n")
		}
		if err := f.drawLine(ctx, root.At(1), "", 0); err != nil {
			return err
		}
	}
	return nil
}

// withoutRecords draws a note for each tree that has only records of an import, and returns the others.
func (f *Forest) withoutRecords() []*graph.Line {
	records := f.Records()
	return slices.DeleteFunc(slices.Clone(f.Roots), func(root *graph.Line) bool {
		name, ok := records[root]
		if ok {
			rest := strings.TrimPrefix(name, string(graph.KindRecords))
			f.drawNote("┊ ", amount.Plural(root.Messages(1), "record")+rest)
		}
		return ok
	})
}

// drawLine draws a line from a message on, with all forks from there.
func (f *Forest) drawLine(ctx context.Context, from graph.Place, prefix string, depth int) error {
	l, forks := from.Line, from.Line.ForksFrom(from.At)
	for seq := from.At; seq <= l.Last; seq++ {
		if fold := f.foldable(l, from.At, seq, forks); fold > 0 {
			f.drawNote(prefix+"┊ ", amount.Plural(fold, "message"))
			seq += fold - 1
			continue
		}
		if err := f.drawMessage(ctx, l.At(seq), prefix); err != nil {
			return err
		}
		var main *graph.Line
		var beside []graph.Place
		for ; len(forks) > 0 && forks[0].After.At == seq; forks = forks[1:] {
			if fork := forks[0]; fork.Main > 0 {
				main = fork
			} else {
				beside = append(beside, fork.At(1))
			}
		}
		if main != nil && seq < l.Last {
			// The active branch left this line here, so the rest of the line is drawn as a fork.
			beside = append(beside, l.At(seq+1))
		}
		if err := f.drawForks(ctx, beside, prefix, depth); err != nil {
			return err
		}
		if main != nil {
			return f.drawLine(ctx, main.At(1), prefix, depth)
		}
	}
	return nil
}

// drawForks draws the lines that fork off a message, each from its place on.
func (f *Forest) drawForks(ctx context.Context, forks []graph.Place, prefix string, depth int) error {
	for i, fork := range forks {
		if i == maxForks && !f.Full {
			f.drawNote(prefix+"├╌ ", "… "+amount.Plural(len(forks)-i, "more fork"))
			break
		}
		if depth == maxDepth && !f.Full {
			f.drawNote(prefix+"├╌ ", fmt.Sprintf("… %s deeper", amount.Plural(fork.Line.Messages(fork.At), "message")))
			continue
		}
		f.drawNote(prefix+"├─╮", "")
		if err := f.drawLine(ctx, fork, prefix+"│ ", depth+1); err != nil {
			return err
		}
	}
	return nil
}

// drawNote draws a note instead of messages, to the right of lines.
func (f *Forest) drawNote(lines, text string) {
	f.Printf("%s%s\n", f.Out.Paint(screen.Blue, lines), f.Out.Paint(screen.Dim, text))
}

// drawMessage draws a message. Its names are always shown, and its text is cut to the remaining width.
func (f *Forest) drawMessage(ctx context.Context, at graph.Place, prefix string) error {
	p, err := f.Point(ctx, at)
	if err != nil {
		return err
	}
	mark, style := "●", screen.Plain
	if at == f.Current {
		mark, style = "◉", screen.Green+";"+screen.Bold
	}
	number := fmt.Sprintf("%*d", f.digits, at.Position())
	who := screen.Pad(screen.Cut(screen.Line(p.Speaker), 20), 9)
	labels := LabelText(f.App, f.Labels[at])
	if labels != "" {
		labels = "  " + labels
	}
	text := screen.Cut(screen.Line(p.Text), 120)
	if f.Out.Width > 0 {
		used := screen.Width(prefix + "● " + number + "  " + who + "  " + screen.Unpaint(labels))
		text = screen.Cut(text, max(f.Out.Width-used, 12))
	}
	if text != "" {
		text = "  " + text
	}
	f.Printf("%s%s %s  %s%s%s\n", f.Out.Paint(screen.Blue, prefix), f.Out.Paint(style, mark), f.Out.Paint(screen.Dim, number),
		f.Out.Paint(screen.OfRole(p.Role), who), text, labels)
	return nil
}

// foldable returns how many messages, from seq on, can be left out of a line that is drawn from the message at from on. Only a long
// part without forks and names is left out, and a few messages before and after it are shown. forks are the forks that are not drawn
// yet.
func (f *Forest) foldable(l *graph.Line, from, seq uint64, forks []*graph.Line) uint64 {
	if f.Full || seq < from+shown {
		return 0
	}
	end := l.Last - min(l.Last, shown-1)
	if len(forks) > 0 {
		end = min(end, forks[0].After.At-min(forks[0].After.At, shown-1))
	}
	if end < seq || end-seq < 2*shown {
		return 0
	}
	n := uint64(0)
	for at := seq; at < end; at++ {
		if f.named(l, at) || f.named(l, at+1) {
			break
		}
		n++
	}
	if n < 2*shown {
		return 0
	}
	// A part starts with messages that are shown: after the start, a fork or a name.
	if f.named(l, seq-1) || len(l.ForksFrom(seq-1)) > len(forks) {
		return 0
	}
	return n
}

func (f *Forest) named(l *graph.Line, seq uint64) bool {
	return len(f.Labels[l.At(seq)]) > 0
}

// Forest is a graph that is drawn.
type Forest struct {
	*app.App
	*graph.Graph
	Full bool
	// digits is the width of the longest position.
	digits int
	// Point returns the content of a message for a tree.
	Point func(ctx context.Context, at graph.Place) (*TreePoint, error)
}

// TreePoint is the content of a message in a tree.
type TreePoint struct{ Speaker, Role, Text string }
