package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/graph"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
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
branch straight down, and what forks off beside it. The names of branches (* is the active one),
checkpoints (◆), forks, subagents and alternatives stand at the message where each is. Long stretches
without a name are folded unless --full is given.`,
		Example: `  lineage tree
  lineage tree lisbon --full
  lineage tree --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) error {
			o.thread = arg(args, 0)
			return runTree(ctx, a, o)
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
	// Preview is how it begins.
	Preview   string    `json:"preview"`
	SpanSet   string    `json:"span_set,omitempty"`
	CreatedAt time.Time `json:"created_at"`
}

func (*nodeRecord) recordType() string { return "node" }

func runTree(ctx context.Context, a *app, o *treeOptions) error {
	if a.dsn() != "" {
		return a.onDB(ctx, func(ctx context.Context, d *database) error { return d.tree(ctx, o) })
	}
	return a.open(ctx, reading, func(ctx context.Context, s *session) error {
		t, err := s.threadNamed(ctx, o.thread)
		if err != nil {
			return err
		}
		f := &forest{session: s, runs: make(map[structure.RunID]*usedRun), full: o.full}
		if err := f.collect(ctx, t); err != nil {
			return err
		}
		if s.json {
			return f.emit(ctx, t)
		}
		return f.draw(ctx, t)
	})
}

// forest is the runs that a thread's histories stand on.
type forest struct {
	*session
	full   bool
	runs   map[structure.RunID]*usedRun
	roots  []*usedRun
	labels labels
	// main is how far the active branch's history goes in each of its runs.
	main    map[structure.RunID]uint64
	current lineage.SpanRef
	digits  int
}

// usedRun is how far a run is used, and what forks off it.
type usedRun struct {
	structure.RunInfo
	last  uint64
	forks []*usedRun
}

func (f *forest) collect(ctx context.Context, t *lineage.Thread) error {
	var err error
	if f.labels, err = f.session.labels(ctx, t); err != nil {
		return err
	}
	info, err := t.Info(ctx)
	if err != nil {
		return err
	}
	f.main = make(map[structure.RunID]uint64)
	longest := uint64(0)
	for c, err := range f.store.View().Contexts(ctx, t.ID(), lineage.ContextID{}) {
		if err != nil {
			return err
		}
		if err := f.use(ctx, c.Tip, nil); err != nil {
			return err
		}
		if c.ID == info.Active {
			f.current = c.Tip
			if err := f.use(ctx, c.Tip, f.main); err != nil {
				return err
			}
		}
	}
	checkpoints, err := t.Checkpoints(ctx)
	if err != nil {
		return err
	}
	for _, c := range checkpoints {
		if err := f.use(ctx, c.Span, nil); err != nil {
			return err
		}
	}
	for _, run := range f.runs {
		longest = max(longest, run.Position(run.last))
		if run.Parent.IsZero() {
			f.roots = append(f.roots, run)
		} else {
			parent := f.runs[run.Parent.Run]
			parent.forks = append(parent.forks, run)
		}
	}
	oldest := func(a, b *usedRun) int {
		return cmp.Or(cmp.Compare(a.Parent.Seq, b.Parent.Seq), a.ID.Compare(b.ID))
	}
	for _, run := range f.runs {
		slices.SortFunc(run.forks, oldest)
	}
	slices.SortFunc(f.roots, oldest)
	f.digits = len(fmt.Sprint(longest))
	return nil
}

// use notes the runs that a history stands on, and in at how far it goes in each.
func (f *forest) use(ctx context.Context, tip lineage.SpanRef, at map[structure.RunID]uint64) error {
	runs := backend.Runs(ctx, f.store.View())
	for !tip.IsZero() {
		run := f.runs[tip.Run]
		known := run != nil && run.last >= tip.Seq
		if run == nil {
			info, err := runs(tip.Run)
			if err != nil {
				return err
			}
			run = &usedRun{RunInfo: info}
			f.runs[tip.Run] = run
		}
		run.last = max(run.last, tip.Seq)
		if at != nil {
			at[tip.Run] = tip.Seq
		} else if known {
			return nil // so is everything behind it
		}
		tip = run.Parent
	}
	return nil
}

// emit prints the contexts, checkpoints and messages as records.
func (f *forest) emit(ctx context.Context, t *lineage.Thread) error {
	thread, err := f.threadRecord(ctx, t)
	if err != nil {
		return err
	}
	if err := f.session.emit(thread); err != nil {
		return err
	}
	for c, err := range t.Contexts(ctx) {
		if err != nil {
			return err
		}
		r, err := f.contextRecord(ctx, c)
		if err != nil {
			return err
		}
		if err := f.session.emit(r); err != nil {
			return err
		}
	}
	checkpoints, err := t.Checkpoints(ctx)
	if err != nil {
		return err
	}
	for _, c := range checkpoints {
		r, err := f.checkpointRecord(ctx, t, c)
		if err != nil {
			return err
		}
		if err := f.session.emit(r); err != nil {
			return err
		}
	}
	todo := slices.Clone(f.roots)
	slices.Reverse(todo)
	for len(todo) > 0 {
		run := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if err := f.emitRun(ctx, run); err != nil {
			return err
		}
		for _, fork := range slices.Backward(run.forks) {
			todo = append(todo, fork)
		}
	}
	return nil
}

func (f *forest) emitRun(ctx context.Context, run *usedRun) error {
	tip := lineage.SpanRef{Run: run.ID, Seq: run.last}
	return f.history(ctx, tip, lineage.Window{Last: run.last}, func(e *lineage.Entry, parent lineage.SpanRef) error {
		preview, err := f.preview(ctx, e)
		if err != nil {
			return err
		}
		r := &nodeRecord{
			ID: entryID(e), Parent: spanID(parent), Position: e.Position, Role: e.Role, ContentID: e.Content.String(),
			Preview: screen.Cut(preview, 120), CreatedAt: e.CreatedAt.UTC(),
		}
		if !e.Set.IsZero() {
			r.SpanSet = e.Set.String()
		}
		return f.session.emit(r)
	})
}

// Limits of a drawing that is not full.
const (
	maxForks = 12
	maxDepth = 12
	// shown is how many messages are shown at each end of a stretch without a name.
	shown = 2
)

func (f *forest) draw(ctx context.Context, t *lineage.Thread) error {
	info, err := t.Info(ctx)
	if err != nil {
		return err
	}
	f.printf("%s  %s\n", f.out.Paint(screen.Bold, titleOf(info)), f.out.Paint(screen.Dim, "thread "+shortText(info.ID.String())))
	if labels := f.labels.painted(f.out, lineage.SpanRef{}); labels != "" {
		f.printf("○ %s  %s\n", f.out.Paint(screen.Dim, "no messages"), labels)
	}
	limits := graph.Limits{Depth: maxDepth, Forks: maxForks}
	if f.full {
		limits = graph.Limits{}
	}
	// The tree of the active branch comes last, where one looks first.
	slices.SortStableFunc(f.roots, func(a, b *usedRun) int {
		return cmp.Compare(min(f.main[a.ID], 1), min(f.main[b.ID], 1))
	})
	for i, root := range f.roots {
		if i > 0 {
			f.printf("\n")
		}
		node, err := f.node(ctx, root, 1, 0)
		if err != nil {
			return err
		}
		if err := graph.Draw(f.out, node, limits); err != nil {
			return err
		}
	}
	return nil
}

// node returns the drawing of a run from a place in it on, and of all that forks off
// it there.
func (f *forest) node(ctx context.Context, run *usedRun, from uint64, depth int) (*graph.Node, error) {
	start := &graph.Node{}
	last := start
	forks := run.forks
	for len(forks) > 0 && forks[0].Parent.Seq < from {
		forks = forks[1:]
	}
	for seq := from; seq <= run.last; seq++ {
		if fold := f.foldable(run, from, seq, forks); fold > 0 {
			n := &graph.Node{Folded: int(fold)}
			last.Children = append(last.Children, n)
			last = n
			seq += fold - 1
			continue
		}
		n, err := f.point(ctx, run, seq)
		if err != nil {
			return nil, err
		}
		last.Children = append(last.Children, n)
		last = n
		var main *graph.Node
		for ; len(forks) > 0 && forks[0].Parent.Seq == seq; forks = forks[1:] {
			fork := forks[0]
			isMain := f.main[fork.ID] > 0
			if !f.full && !isMain && (depth >= maxDepth || len(n.Children) > maxForks) {
				// It is counted and not drawn.
				n.Children = append(n.Children, &graph.Node{Folded: int(messages(fork))})
				continue
			}
			side, err := f.node(ctx, fork, 1, depth+1)
			if err != nil {
				return nil, err
			}
			if isMain {
				main = side
			} else {
				n.Children = append(n.Children, side)
			}
		}
		if main == nil {
			if seq == run.last && len(n.Children) > 0 {
				// Nothing goes straight on here: what forked off last is beside the end.
				n.Children = append(n.Children, nil)
			}
			continue
		}
		// The active branch left this run here: the rest of the run is a fork of it.
		if seq < run.last {
			rest, err := f.node(ctx, run, seq+1, depth+1)
			if err != nil {
				return nil, err
			}
			n.Children = append(n.Children, rest)
		}
		n.Children = append(n.Children, main)
		break
	}
	return start.Children[0], nil
}

// messages returns how many messages a run and what forks off it have.
func messages(run *usedRun) uint64 {
	n, todo := uint64(0), []*usedRun{run}
	for len(todo) > 0 {
		run := todo[len(todo)-1]
		todo = append(todo[:len(todo)-1], run.forks...)
		n += run.last
	}
	return n
}

// foldable returns how many spans from seq on can be left out: a long stretch in the
// middle of a run where nothing forks off and no name points to.
func (f *forest) foldable(run *usedRun, from, seq uint64, forks []*usedRun) uint64 {
	if f.full || seq < from+shown {
		return 0
	}
	end := run.last - min(run.last, shown-1)
	if len(forks) > 0 {
		end = min(end, forks[0].Parent.Seq-min(forks[0].Parent.Seq, shown-1))
	}
	if end < seq || end-seq < 2*shown {
		return 0
	}
	n := uint64(0)
	for at := seq; at < end; at++ {
		if len(f.labels[lineage.SpanRef{Run: run.ID, Seq: at}]) > 0 || f.named(run, at+1) {
			break
		}
		n++
	}
	if n < 2*shown {
		return 0
	}
	// A stretch begins with messages that are shown: after the start, a fork or a name.
	if f.named(run, seq-1) || f.forksAt(run, seq-1) {
		return 0
	}
	return n
}

func (f *forest) named(run *usedRun, seq uint64) bool {
	return len(f.labels[lineage.SpanRef{Run: run.ID, Seq: seq}]) > 0
}

func (f *forest) forksAt(run *usedRun, seq uint64) bool {
	_, found := slices.BinarySearchFunc(f.runs[run.ID].forks, seq, func(r *usedRun, seq uint64) int {
		return cmp.Compare(r.Parent.Seq, seq)
	})
	return found
}

// point returns the drawing of one span.
func (f *forest) point(ctx context.Context, run *usedRun, seq uint64) (*graph.Node, error) {
	ref := lineage.SpanRef{Run: run.ID, Seq: seq}
	entries, err := f.store.Span(ctx, ref)
	if err != nil {
		return nil, err
	}
	e := entries[0]
	text, err := f.preview(ctx, e)
	if err != nil {
		return nil, err
	}
	if len(entries) > 1 {
		text = fmt.Sprintf("(and %d more) %s", len(entries)-1, text)
	}
	number := fmt.Sprintf("%*d", f.digits, run.Position(seq))
	who := screen.Pad(screen.Cut(screen.Line(speaker(e)), 20), 9)
	return &graph.Node{
		Head:      f.out.Paint(screen.Dim, number) + "  " + f.out.Paint(screen.OfRole(e.Role), who),
		HeadWidth: len(number) + 2 + screen.Width(who),
		Text:      screen.Cut(text, 120), Labels: f.labels.painted(f.out, ref), Current: ref == f.current,
	}, nil
}
