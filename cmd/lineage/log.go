package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/graph"
	"github.com/lineage-store/lineage/lineage/records"
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
they are added, by any process, until it is interrupted. A rewind is reported on standard error.`,
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
	switch {
	case o.follow && o.oneline:
		return usagef("--follow: not with --oneline, which prints when it has read everything")
	case o.follow && o.to != 0:
		return usagef("--follow: not with --to")
	case o.follow:
		return a.open(ctx, reading, func(ctx context.Context, s *session) error { return followLog(ctx, s, o) })
	}
	return a.openThreads(ctx, reading, func(ctx context.Context, in threads) error {
		r := a.read()
		return a.printLog(o, r, func(visit func(*readMessage, []graph.Label) error) error { return in.history(ctx, o, r, visit) })
	})
}

// followLog prints a history, and then messages that are added to it.
func followLog(ctx context.Context, s *session, o *logOptions) error {
	found, err := s.refs.Find(ctx, o.at)
	if err != nil {
		return err
	}
	if found.Context == nil || found.Moved {
		return usagef("--follow: %s is a fixed position, to which nothing is added", found.Text)
	}
	r := s.read()
	err = s.printLog(o, r, func(visit func(*readMessage, []graph.Label) error) error { return s.historyAt(ctx, found, o, r, visit) })
	if err := errors.Join(err, s.flush()); err != nil {
		return err
	}
	for {
		err := s.followFrom(ctx, found.Context, found.Span, o, r)
		var moved *lineage.TipError
		if !errors.As(err, &moved) {
			return err
		}
		// Another process rewound the context or chose another history.
		if found.Span = moved.Actual; found.Span.IsZero() {
			s.warn("%s was moved to its start", cmp.Or(found.Text, "the active branch"))
			continue
		}
		position, err := s.store.Position(ctx, found.Span)
		if err != nil {
			return err
		}
		s.warn("%s was moved to message %d, %s", cmp.Or(found.Text, "the active branch"), position, shortID(found.Span.String()))
	}
}

// followFrom prints messages that are added to a context after a span.
func (s *session) followFrom(ctx context.Context, c *lineage.Context, after lineage.SpanRef, o *logOptions, r *reader) error {
	for e, err := range c.Watch(ctx, after) {
		if err != nil {
			return err
		}
		if o.wants(e.Kind.String(), e.Role) {
			m, err := s.message(ctx, e, records.MaxText)
			if err != nil {
				return err
			}
			if s.json {
				err = s.emit(m)
			} else {
				r.add(m, nil)
				r.flush()
			}
			if err := errors.Join(err, s.flush()); err != nil {
				return err
			}
		}
	}
	return nil
}

// wants reports whether a message of a role, or another use of content, is to be printed.
func (o *logOptions) wants(kind, role string) bool {
	return len(o.roles) == 0 || kind == lineage.Message.String() && slices.Contains(o.roles, role)
}

// printLog prints the messages that read visits.
func (a *app) printLog(o *logOptions, r *reader, read func(visit func(*readMessage, []graph.Label) error) error) error {
	lines, printed := a.list("", "", "", ""), 0
	err := read(func(m *readMessage, names []graph.Label) error {
		printed++
		switch {
		case a.json:
			return a.emit(m)
		case !o.oneline:
			r.add(m, names)
			return nil
		}
		speaker, text := m.line()
		if len(names) > 0 {
			text = "(" + screen.Unpaint(a.labelText(names)) + ") " + text
		}
		lines.row(screen.Cell{Text: fmt.Sprint(m.Position), Right: true, Style: screen.Dim}, idCell(shortID(m.ID)), speaker, plainCell(text))
		return nil
	})
	r.flush()
	if err != nil {
		return err
	}
	if printed > 0 && !a.json && !o.oneline && !o.follow {
		r.end()
	}
	if printed == 0 && !o.follow {
		a.note("no messages; 'lineage append TEXT' adds one")
	}
	return lines.end("")
}

// history implements threads.
func (s *session) history(ctx context.Context, o *logOptions, r *reader, visit func(*readMessage, []graph.Label) error) error {
	found, err := s.refs.Find(ctx, o.at)
	if err != nil {
		return err
	}
	return s.historyAt(ctx, found, o, r, visit)
}

// historyAt is history at a position that was found.
func (s *session) historyAt(ctx context.Context, found *refs.Ref, o *logOptions, r *reader, visit func(*readMessage, []graph.Label) error) (err error) {
	var names map[lineage.SpanRef][]graph.Label
	if !s.json && found.Thread != nil {
		if names, err = graph.Labels(ctx, s.store, found.Thread); err != nil {
			return err
		}
	}
	limit := int64(records.MaxText)
	if o.oneline && !s.json {
		limit = records.MaxPreview
	}
	first := true
	for e, err := range s.store.History(ctx, found.Span, lineage.Window{From: o.from, To: o.to, Last: o.last}) {
		if err != nil {
			return err
		}
		if first && !o.oneline {
			if err := s.learnBefore(ctx, r, e); err != nil {
				return err
			}
		}
		first = false
		if !o.wants(e.Kind.String(), e.Role) {
			continue
		}
		m, err := s.message(ctx, e, limit)
		if err != nil {
			return err
		}
		if err := visit(m, names[e.Span]); err != nil {
			return err
		}
	}
	return nil
}

// painted returns a label as a terminal shows it.
func (a *app) painted(l graph.Label) string {
	switch text := screen.Line(l.String()); {
	case l.Active:
		return a.out.Paint(screen.Green+";"+screen.Bold, text+" *")
	case l.Kind == graph.KindBranch:
		return a.out.Paint(screen.Green, text)
	case l.Kind == graph.KindCheckpoint:
		return a.out.Paint(screen.Yellow, "◆ "+text)
	default:
		return a.out.Paint(screen.Blue, text)
	}
}

// maxLabels bounds how many names are shown at one message.
const maxLabels = 6

// labelText returns the names that point to a message, painted.
func (a *app) labelText(names []graph.Label) string {
	var texts []string
	for i, name := range names {
		if i == maxLabels {
			texts = append(texts, fmt.Sprintf("and %d more", len(names)-maxLabels))
			break
		}
		texts = append(texts, a.painted(name))
	}
	return strings.Join(texts, ", ")
}
