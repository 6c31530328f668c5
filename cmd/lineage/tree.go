package main

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/graph"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
)

type treeOptions struct {
	thread string
	full   bool
}

func treeCommand(a *app) *cobra.Command {
	o := &treeOptions{}
	c := &cobra.Command{
		Use:   "tree [THREAD]",
		Short: "Draw the histories of a thread",
		Long: `Draws the histories of a thread as a tree: messages from top to bottom, the line of the active
branch straight down, and forks to its right. The names of branches (* is the active one),
checkpoints (◆), forks, subagents and alternatives are shown at their message. Long parts
without a name are folded unless --full is given.`,
		Example: `  lineage tree
  lineage tree lisbon --full
  lineage tree --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.onThreads(reading, func(ctx context.Context, in threads, args []string) error {
			o.thread = arg(args, 0)
			return in.tree(ctx, o)
		}),
	}
	c.Flags().BoolVar(&o.full, "full", false, "show every message and fork")
	return c
}

// nodeRecord is a message in a tree.
type nodeRecord struct {
	ID        string  `json:"id"`
	Parent    *string `json:"parent"`
	Position  uint64  `json:"position"`
	Role      string  `json:"role"`
	ContentID string  `json:"content_id,omitempty"`
	// Preview is the start of its text.
	Preview   string    `json:"preview"`
	SpanSet   string    `json:"span_set,omitempty"`
	CreatedAt time.Time `json:"created_at"`
}

func (*nodeRecord) recordType() string { return "node" }

// forest is the histories of a thread: lines of messages that fork off one another.
type forest struct {
	*app
	full bool
	// roots begin with a first message.
	roots  []*line
	labels map[place][]label
	// current is where the active branch is, and digits the width of the longest position.
	current place
	digits  int
	// point returns how a message is shown.
	point func(ctx context.Context, at place) (*treePoint, error)
}

// line is a straight part of a history.
type line struct {
	// after is the message that it forks off, zero if it begins a history, and before how many messages lead to it.
	after  place
	before uint64
	// last is how many messages it has, and main how far the history of the active branch goes in it.
	last, main uint64
	// forks are the lines that fork off it, in the order of their places.
	forks []*line
}

// place is a message of a line, counted from 1. The zero place is the start of every history.
type place struct {
	line *line
	at   uint64
}

// treePoint is what a tree shows of a message.
type treePoint struct{ speaker, role, text string }

// add adds a line. The forks of a line are added in the order of their places.
func (f *forest) add(l *line) {
	f.digits = max(f.digits, len(fmt.Sprint(l.before+l.last)))
	if l.after.line == nil {
		f.roots = append(f.roots, l)
	} else {
		l.after.line.forks = append(l.after.line.forks, l)
	}
}

// setCurrent sets where the active branch is.
func (f *forest) setCurrent(at place) {
	f.current = at
	for ; at.line != nil; at = at.line.after {
		at.line.main = at.at
	}
}

// each yields every line, and after it those that fork off it.
func (f *forest) each() iter.Seq[*line] {
	return func(yield func(*line) bool) {
		todo := slices.Clone(f.roots)
		slices.Reverse(todo)
		for len(todo) > 0 {
			l := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			if !yield(l) {
				return
			}
			for _, fork := range slices.Backward(l.forks) {
				todo = append(todo, fork)
			}
		}
	}
}

// Limits of a drawing that is not full.
const (
	maxForks = 12
	maxDepth = 12
	// shown is how many messages are shown at each end of a stretch without a name.
	shown = 2
)

// draw draws the forest below the title and the id of the thread.
func (f *forest) draw(ctx context.Context, title, id string) error {
	f.printf("%s  %s\n", f.out.Paint(screen.Bold, title), f.out.Paint(screen.Dim, "thread "+screen.Line(id)))
	if names := f.labels[place{}]; len(names) > 0 {
		f.printf("○ %s  %s\n", f.out.Paint(screen.Dim, "no messages"), f.labelText(names))
	}
	limits := graph.Limits{Depth: maxDepth, Forks: maxForks}
	if f.full {
		limits = graph.Limits{}
	}
	// The tree of the active branch comes last, where one looks first.
	slices.SortStableFunc(f.roots, func(a, b *line) int { return cmp.Compare(min(a.main, 1), min(b.main, 1)) })
	for i, root := range f.roots {
		if i > 0 {
			f.printf("\n")
		}
		node, err := f.node(ctx, root, 1)
		if err != nil {
			return err
		}
		if err := graph.Draw(f.out, node, limits); err != nil {
			return err
		}
	}
	return nil
}

// node returns the drawing of a line from a message on, and of all that forks off
// it there.
func (f *forest) node(ctx context.Context, l *line, from uint64) (*graph.Node, error) {
	start := &graph.Node{}
	last := start
	forks := l.forksFrom(from)
	for seq := from; seq <= l.last; seq++ {
		if fold := f.foldable(l, from, seq, forks); fold > 0 {
			last.Next = &graph.Node{Folded: int(fold)}
			last = last.Next
			seq += fold - 1
			continue
		}
		n, err := f.message(ctx, place{l, seq})
		if err != nil {
			return nil, err
		}
		last.Next, last = n, n
		var main *line
		for ; len(forks) > 0 && forks[0].after.at == seq; forks = forks[1:] {
			if fork := forks[0]; fork.main > 0 {
				main = fork
			} else {
				n.Forks = append(n.Forks, f.fork(ctx, fork, 1))
			}
		}
		if main == nil {
			continue
		}
		// The active branch left this line here: the rest of the line is a fork of it.
		if seq < l.last {
			n.Forks = append(n.Forks, f.fork(ctx, l, seq+1))
		}
		n.Next, err = f.node(ctx, main, 1)
		return start.Next, err
	}
	return start.Next, nil
}

// fork returns a line from a message on, and what forks off it there, as a fork.
func (f *forest) fork(ctx context.Context, l *line, from uint64) graph.Fork {
	return graph.Fork{
		Points: func() uint64 { return l.messages(from) },
		Begin:  func() (*graph.Node, error) { return f.node(ctx, l, from) },
	}
}

// forksFrom returns the lines that fork off a line from a message on.
func (l *line) forksFrom(at uint64) []*line {
	i, _ := slices.BinarySearchFunc(l.forks, at, func(fork *line, at uint64) int { return cmp.Compare(fork.after.at, at) })
	return l.forks[i:]
}

// messages returns how many messages a line has from one on, with what forks off it there.
func (l *line) messages(from uint64) uint64 {
	n, todo := l.last-from+1, slices.Clone(l.forksFrom(from))
	for len(todo) > 0 {
		l := todo[len(todo)-1]
		todo = append(todo[:len(todo)-1], l.forks...)
		n += l.last
	}
	return n
}

// foldable returns how many messages from seq on can be left out: a long stretch in the
// middle of a line where nothing forks off and no name points to.
func (f *forest) foldable(l *line, from, seq uint64, forks []*line) uint64 {
	if f.full || seq < from+shown {
		return 0
	}
	end := l.last - min(l.last, shown-1)
	if len(forks) > 0 {
		end = min(end, forks[0].after.at-min(forks[0].after.at, shown-1))
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
	if f.named(l, seq-1) || len(l.forksFrom(seq-1)) > len(forks) {
		return 0
	}
	return n
}

func (f *forest) named(l *line, seq uint64) bool {
	return len(f.labels[place{l, seq}]) > 0
}

// message returns the drawing of one message.
func (f *forest) message(ctx context.Context, at place) (*graph.Node, error) {
	p, err := f.point(ctx, at)
	if err != nil {
		return nil, err
	}
	number := fmt.Sprintf("%*d", f.digits, at.line.before+at.at)
	who := screen.Pad(screen.Cut(screen.Line(p.speaker), 20), 9)
	return &graph.Node{
		Head:      f.out.Paint(screen.Dim, number) + "  " + f.out.Paint(screen.OfRole(p.role), who),
		HeadWidth: len(number) + 2 + screen.Width(who),
		Text:      screen.Cut(screen.Line(p.text), 120), Labels: f.labelText(f.labels[at]), Current: at == f.current,
	}, nil
}
