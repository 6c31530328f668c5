package main

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/spf13/cobra"
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
without a name, and the records that an import keeps beside the messages, are folded unless
--full is given.`,
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
