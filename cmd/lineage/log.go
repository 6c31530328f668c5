package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/refs"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/structure"
)

type logOptions struct {
	at      string
	last    uint64
	from    uint64
	to      uint64
	roles   []string
	oneline bool
	follow  bool
}

func logCommand(a *app) *cobra.Command {
	o := &logOptions{}
	c := &cobra.Command{
		Use:   "log [CONTEXT]",
		Short: "Print a history, oldest message first",
		Long: `Prints the history of a context, branch, checkpoint or message, oldest message first:
that of the active branch unless another is named. With --follow it prints further messages as
they are added, by any process, until it is interrupted.`,
		Example: `  lineage log
  lineage log cheap --last 2
  lineage log start --json
  lineage log --oneline --role user`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) error {
			o.at = arg(args, 0)
			return runLog(ctx, a, o)
		}),
	}
	f := c.Flags()
	f.Uint64VarP(&o.last, "last", "n", 0, "only the last so many")
	f.Uint64Var(&o.from, "from", 0, "only from this position on, counted from 1")
	f.Uint64Var(&o.to, "to", 0, "only up to this position")
	f.StringSliceVar(&o.roles, "role", nil, "only messages of these roles")
	f.BoolVar(&o.oneline, "oneline", false, "a line for each message")
	f.BoolVarP(&o.follow, "follow", "f", false, "wait for more")
	return c
}

func runLog(ctx context.Context, a *app, o *logOptions) error {
	if a.dsn() != "" {
		return a.onDB(ctx, func(ctx context.Context, d *database) error { return d.log(ctx, o) })
	}
	switch {
	case o.follow && o.oneline:
		return usagef("--follow: not with --oneline, which prints when it has read everything")
	case o.follow && o.to != 0:
		return usagef("--follow: not with --to")
	case o.follow:
		return a.read(ctx, func(ctx context.Context, s *session) error { return followLog(ctx, s, o) })
	}
	return a.read(ctx, func(ctx context.Context, s *session) error {
		found, err := s.position(ctx, o.at)
		if err != nil {
			return err
		}
		return printLog(ctx, s, o, found)
	})
}

// followLog prints a history, and then what is added to it.
func followLog(ctx context.Context, s *session, o *logOptions) error {
	found, err := s.position(ctx, o.at)
	if err != nil {
		return err
	}
	if found.Context == nil || found.Moved {
		return usagef("--follow: %s is a fixed position, to which nothing is added", found.Text)
	}
	if err := printLog(ctx, s, o, found); err != nil {
		return err
	}
	if err := s.flush(); err != nil {
		return err
	}
	parent := found.Span
	for e, err := range found.Context.Watch(ctx, found.Span) {
		if err != nil {
			return err
		}
		if hasRole(e, o.roles) {
			if err := s.printOne(ctx, e, parent, labels{}); err != nil {
				return err
			}
		}
		parent = e.Span
		if err := s.flush(); err != nil {
			return err
		}
	}
	return nil
}

// printOne prints a message of a history as a record, or for people.
func (s *session) printOne(ctx context.Context, e *lineage.Entry, parent lineage.SpanRef, l labels) error {
	if !s.json {
		return s.printEntry(ctx, e, l.painted(s.out, e.Span))
	}
	m, err := s.message(ctx, e, parent)
	if err != nil {
		return err
	}
	return s.emit(m)
}

func printLog(ctx context.Context, s *session, o *logOptions, found *refs.Ref) (err error) {
	labels := labels{}
	if !s.json && found.Thread != nil {
		if labels, err = s.labels(ctx, found.Thread); err != nil {
			return err
		}
	}
	table := screen.NewTable(s.out, "", "", "", "")
	printed := 0
	window := lineage.Window{From: o.from, To: o.to, Last: o.last}
	err = s.history(ctx, found.Span, window, func(e *lineage.Entry, parent lineage.SpanRef) error {
		if !hasRole(e, o.roles) {
			return nil
		}
		printed++
		if s.json || !o.oneline {
			return s.printOne(ctx, e, parent, labels)
		}
		text, err := s.preview(ctx, e)
		if label := labels.plain(e.Span); label != "" {
			text = "(" + label + ") " + text
		}
		table.Cells(screen.Cell{Text: fmt.Sprint(e.Position), Right: true, Style: screen.Dim},
			screen.Cell{Text: shortEntry(e), Style: screen.Yellow},
			screen.Cell{Text: speaker(e), Style: screen.OfRole(e.Role)}, screen.Cell{Text: text})
		return err
	})
	if err != nil {
		return err
	}
	if o.oneline && !s.json {
		return table.Print()
	}
	if printed == 0 && !o.follow {
		s.note("no messages; 'lineage append TEXT' adds one")
	}
	return nil
}

func hasRole(e *lineage.Entry, roles []string) bool {
	if len(roles) == 0 {
		return true
	}
	for _, role := range roles {
		if e.Kind == lineage.Message && e.Role == role {
			return true
		}
	}
	return false
}

// labels are the names that point to spans.
type labels map[lineage.SpanRef][]label

// A label is a name that points to a span.
type label struct {
	text  string
	style screen.Style
}

// labels returns the names in a thread: branches, checkpoints, and contexts without
// a name that stand where no branch does.
func (s *session) labels(ctx context.Context, t *lineage.Thread) (labels, error) {
	all := labels{}
	branches, err := t.Branches(ctx)
	if err != nil {
		return nil, err
	}
	named := make(map[lineage.ContextID]bool)
	for _, b := range branches {
		named[b.Context] = true
		l := label{text: b.Name, style: screen.Green}
		if b.Active {
			l = label{text: b.Name + " *", style: screen.Green + ";" + screen.Bold}
		}
		all[b.Head] = append(all[b.Head], l)
	}
	checkpoints, err := t.Checkpoints(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range checkpoints {
		all[c.Span] = append(all[c.Span], label{text: "◆ " + c.Name, style: screen.Yellow})
	}
	for c, err := range s.store.View().Contexts(ctx, t.ID(), lineage.ContextID{}) {
		if err != nil {
			return nil, err
		}
		if !named[c.ID] {
			all[c.Tip] = append(all[c.Tip], label{text: kindOf(&c.Context) + " " + refs.Short(c.ID), style: screen.Blue})
		}
	}
	return all, nil
}

// kindOf returns what a context without a name is. Nothing but their metadata tells
// subagents that see everything from other forks.
func kindOf(c *structure.Context) string {
	var mark struct {
		MadeBy string `json:"made_by"`
		Aside  any    `json:"aside"`
	}
	if c.Metadata != nil && json.Unmarshal(c.Metadata, &mark) != nil {
		mark.MadeBy = ""
	}
	switch {
	case !c.Set.IsZero():
		return "alternative"
	case mark.MadeBy == "edit" || mark.MadeBy == "subagent":
		return mark.MadeBy
	case mark.Aside != nil, c.Base.IsZero() && !c.Parent.IsZero():
		return "subagent"
	}
	return "fork"
}

// maxLabels bounds how many names are shown at one message.
const maxLabels = 6

func (l labels) texts(at lineage.SpanRef, paint func(label) string) []string {
	var texts []string
	for i, name := range l[at] {
		if i == maxLabels {
			texts = append(texts, fmt.Sprintf("and %d more", len(l[at])-maxLabels))
			break
		}
		texts = append(texts, paint(name))
	}
	return texts
}

func (l labels) plain(at lineage.SpanRef) string {
	return screen.Line(strings.Join(l.texts(at, func(n label) string { return n.text }), ", "))
}

func (l labels) painted(to *screen.Screen, at lineage.SpanRef) string {
	return strings.Join(l.texts(at, func(n label) string { return to.Paint(n.style, screen.Line(n.text)) }), ", ")
}
