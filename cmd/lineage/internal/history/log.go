// Package history has the commands that read histories and add to them.
package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/cmd/lineage/internal/show"
	"github.com/lineage-store/lineage/cmd/lineage/internal/threads"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/graph"
	"github.com/lineage-store/lineage/lineage/records"
)

func LogCommand(a *app.App) *cobra.Command {
	o := &threads.LogOptions{}
	c := &cobra.Command{
		Use:   "log [CONTEXT]",
		Short: "Print a history, oldest message first",
		Long: `Prints the history of a context, branch, checkpoint or message, oldest message first:
that of the active branch unless another is named. Of a long system prompt only the beginning
is printed without --full. With --role, results of tools have the role tool, as in a search,
also where their format gives them to the user. With --follow it prints further messages as
they are added, by any process, until it is interrupted. A rewind is reported on standard error.`,
		Example: `  lineage log
  lineage log cheap --last 2
  lineage log start --json
  lineage log --oneline --role user`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.Does(func(ctx context.Context, args []string) error {
			o.At = app.Arg(args, 0)
			return runLog(ctx, a, o)
		}),
	}
	f := c.Flags()
	f.Uint64VarP(&o.Last, "last", "n", 0, "only the last so many")
	f.Uint64Var(&o.From, "from", 0, "only from this position on, counted from 1")
	f.Uint64Var(&o.To, "to", 0, "only up to this position")
	f.StringSliceVar(&o.Roles, "role", nil, "only messages of these roles")
	f.BoolVar(&o.Full, "full", false, "print long system prompts and reminders whole")
	f.BoolVar(&o.Oneline, "oneline", false, "a line for each message")
	f.BoolVarP(&o.Follow, "follow", "f", false, "wait for more")
	return c
}

func runLog(ctx context.Context, a *app.App, o *threads.LogOptions) error {
	switch {
	case o.Follow && o.Oneline:
		return app.Usagef("--follow: not with --oneline, which prints when it has read everything")
	case o.Follow && o.To != 0:
		return app.Usagef("--follow: not with --to")
	case o.Follow:
		return a.Open(ctx, app.Reading, func(ctx context.Context, s *app.OpenStore) error { return followLog(ctx, s, o) })
	}
	return threads.Open(ctx, a, app.Reading, func(ctx context.Context, in threads.Keeper) error {
		r := show.NewReader(a)
		r.Short = !o.Full
		printed, err := printLog(a, o, r, func(visit func(*show.ReadMessage, []graph.Label) error) error { return in.History(ctx, o, r, visit) })
		if err != nil || printed > 0 {
			return err
		}
		return noteEmpty(ctx, a, in, o)
	})
}

// noteEmpty says where there are messages when a log has none.
func noteEmpty(ctx context.Context, a *app.App, in threads.Keeper, o *threads.LogOptions) error {
	if o.At == "" && len(o.Roles) == 0 {
		thread, err := in.FindThread(ctx, "")
		if err != nil {
			return err
		}
		if n := thread.SubagentMessages; n > 0 {
			a.Note("no messages here, but %s of subagents; 'lineage contexts' lists these, and 'lineage log ID' prints one", amount.Count(n))
			return nil
		}
	}
	a.Note("no messages here; 'lineage tree' shows other branches and subagents, 'lineage append TEXT' adds a message")
	return nil
}

// followLog prints a history, and then messages that are added to it.
func followLog(ctx context.Context, s *app.OpenStore, o *threads.LogOptions) error {
	found, err := s.Refs.Find(ctx, o.At)
	if err != nil {
		return err
	}
	if found.Context == nil || found.Moved {
		return app.Usagef("--follow: %s is a fixed position, to which nothing is added", found.Text)
	}
	r := show.NewReader(s.App)
	r.Short = !o.Full
	_, err = printLog(s.App, o, r, func(visit func(*show.ReadMessage, []graph.Label) error) error {
		return threads.HistoryAt(ctx, s, found, o, r, visit)
	})
	if err := errors.Join(err, s.Flush()); err != nil {
		return err
	}
	for {
		err := followFrom(ctx, s, found.Context, found.Span, o, r)
		var moved *lineage.TipError
		if !errors.As(err, &moved) {
			return err
		}
		// Another process rewound the context or chose another history.
		if found.Span = moved.Actual; found.Span.IsZero() {
			s.Warn("%s was moved to its start", cmp.Or(found.Text, "the active branch"))
			continue
		}
		position, err := s.Store.Position(ctx, found.Span)
		if err != nil {
			return err
		}
		s.Warn("%s was moved to message %d, %s", cmp.Or(found.Text, "the active branch"), position, show.ShortID(found.Span.String()))
	}
}

// followFrom prints messages that are added to a context after a span.
func followFrom(ctx context.Context, s *app.OpenStore, c *lineage.Context, after lineage.SpanRef, o *threads.LogOptions, r *show.Reader) error {
	for e, err := range c.Watch(ctx, after) {
		if err != nil {
			return err
		}
		if o.Wants(e.Kind.String(), e.SearchRole()) {
			m, err := show.Message(ctx, s, e, records.MaxText)
			if err != nil {
				return err
			}
			if s.JSON {
				err = s.Emit(m)
			} else {
				r.Add(m, nil)
				r.Flush()
			}
			if err := errors.Join(err, s.Flush()); err != nil {
				return err
			}
		}
	}
	return nil
}

// printLog prints the messages that read passes to visit, and returns their number.
func printLog(a *app.App, o *threads.LogOptions, r *show.Reader, read func(visit func(*show.ReadMessage, []graph.Label) error) error) (printed int, err error) {
	lines := a.List("", "", "", "")
	err = read(func(m *show.ReadMessage, names []graph.Label) error {
		printed++
		switch {
		case a.JSON:
			return a.Emit(m)
		case !o.Oneline:
			r.Add(m, names)
			return nil
		}
		speaker, text := m.Line()
		if len(names) > 0 {
			text = "(" + screen.Unpaint(show.LabelText(a, names)) + ") " + text
		}
		lines.Row(screen.Cell{Text: fmt.Sprint(m.Position), Right: true, Style: screen.Dim}, app.IDCell(show.ShortID(m.ID)), speaker, app.PlainCell(text))
		return nil
	})
	r.Flush()
	if err != nil {
		return printed, err
	}
	if printed > 0 && !a.JSON && !o.Oneline && !o.Follow {
		r.End()
	}
	return printed, lines.End("")
}
