package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/lineage/graph"
)

// Limits of a drawing that is not full.
const (
	maxForks = 12
	maxDepth = 12
	// shown is how many messages are shown at each end of a stretch without a name.
	shown = 2
)

// draw draws the forest below the title and the id of the thread, with box characters, the way a history reads: the line
// of the active branch goes straight down, and forks are drawn to its right.
func (f *forest) draw(ctx context.Context, title, id string) error {
	f.printf("%s  %s\n", f.out.Paint(screen.Bold, title), f.out.Paint(screen.Dim, "thread "+screen.Line(id)))
	if names := f.Labels[graph.Place{}]; len(names) > 0 {
		f.printf("○ %s  %s\n", f.out.Paint(screen.Dim, "no messages"), f.labelText(names))
	}
	for l := range f.Lines() {
		f.digits = max(f.digits, len(fmt.Sprint(l.Before+l.Last)))
	}
	// The tree of the active branch comes last, where one looks first.
	slices.SortStableFunc(f.Roots, func(a, b *graph.Line) int { return cmp.Compare(min(a.Main, 1), min(b.Main, 1)) })
	roots := f.Roots
	if !f.full {
		roots = f.withoutRecords()
	}
	for i, root := range roots {
		if i > 0 {
			f.printf("\n")
		}
		if err := f.drawLine(ctx, root.At(1), "", 0); err != nil {
			return err
		}
	}
	return nil
}

// withoutRecords draws a note in place of each tree that has only records of an import, and returns the
// others.
func (f *forest) withoutRecords() []*graph.Line {
	records := f.Records()
	return slices.DeleteFunc(slices.Clone(f.Roots), func(root *graph.Line) bool {
		name, is := records[root]
		if is {
			f.drawNote("┊ ", screen.Count(root.Messages(1))+" "+name)
		}
		return is
	})
}

// drawLine draws a line from a message on, and all that forks off it there.
func (f *forest) drawLine(ctx context.Context, from graph.Place, prefix string, depth int) error {
	l, forks := from.Line, from.Line.ForksFrom(from.At)
	for seq := from.At; seq <= l.Last; seq++ {
		if fold := f.foldable(l, from.At, seq, forks); fold > 0 {
			f.drawNote(prefix+"┊ ", screen.Plural(fold, "message"))
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
			// The active branch left this line here: the rest of the line is a fork of it.
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
func (f *forest) drawForks(ctx context.Context, forks []graph.Place, prefix string, depth int) error {
	for i, fork := range forks {
		if i == maxForks && !f.full {
			f.drawNote(prefix+"├╌ ", fmt.Sprintf("… %d more forks", len(forks)-i))
			break
		}
		if depth == maxDepth && !f.full {
			f.drawNote(prefix+"├╌ ", fmt.Sprintf("… %s deeper", screen.Plural(fork.Line.Messages(fork.At), "message")))
			continue
		}
		f.drawNote(prefix+"├─╮", "")
		if err := f.drawLine(ctx, fork, prefix+"│ ", depth+1); err != nil {
			return err
		}
	}
	return nil
}

// drawNote draws what is shown in place of messages, to the right of lines.
func (f *forest) drawNote(lines, text string) {
	f.printf("%s%s\n", f.out.Paint(screen.Blue, lines), f.out.Paint(screen.Dim, text))
}

// drawMessage draws a message. The names that point to it are always shown, and its text is cut to the width that is left.
func (f *forest) drawMessage(ctx context.Context, at graph.Place, prefix string) error {
	p, err := f.point(ctx, at)
	if err != nil {
		return err
	}
	mark, style := "●", screen.Plain
	if at == f.Current {
		mark, style = "◉", screen.Green+";"+screen.Bold
	}
	number := fmt.Sprintf("%*d", f.digits, at.Position())
	who := screen.Pad(screen.Cut(screen.Line(p.speaker), 20), 9)
	labels := f.labelText(f.Labels[at])
	if labels != "" {
		labels = "  " + labels
	}
	text := screen.Cut(screen.Line(p.text), 120)
	if f.out.Width > 0 {
		used := screen.Width(prefix + "● " + number + "  " + who + "  " + screen.Unpaint(labels))
		text = screen.Cut(text, max(f.out.Width-used, 12))
	}
	if text != "" {
		text = "  " + text
	}
	f.printf("%s%s %s  %s%s%s\n", f.out.Paint(screen.Blue, prefix), f.out.Paint(style, mark), f.out.Paint(screen.Dim, number),
		f.out.Paint(screen.OfRole(p.role), who), text, labels)
	return nil
}

// foldable returns how many messages from seq on can be left out: a long stretch in the
// middle of a line where nothing forks off and no name points to.
func (f *forest) foldable(l *graph.Line, from, seq uint64, forks []*graph.Line) uint64 {
	if f.full || seq < from+shown {
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
	// A stretch begins with messages that are shown: after the start, a fork or a name.
	if f.named(l, seq-1) || len(l.ForksFrom(seq-1)) > len(forks) {
		return 0
	}
	return n
}

func (f *forest) named(l *graph.Line, seq uint64) bool {
	return len(f.Labels[l.At(seq)]) > 0
}
