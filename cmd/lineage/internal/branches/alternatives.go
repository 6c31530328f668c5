package branches

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/cmd/lineage/internal/show"
	"github.com/lineage-store/lineage/cmd/lineage/internal/threads"
	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/lineage/usage"
	"github.com/lineage-store/lineage/lineage/usage/prices"
)

type alternativesOptions struct {
	count  int
	models []string
	to     string
	retry  bool
}

func AlternativesCommand(a *app.App) *cobra.Command {
	o := &alternativesOptions{}
	c := &cobra.Command{
		Use:   "alternatives [CONTEXT]",
		Short: "Create alternatives for the next message, or list them",
		Long: `Creates alternatives for the next message of a context: a context for each, to
be filled with 'lineage append' in any order. The context does not change until one is
chosen with 'lineage choose'. Without --count and --model the alternatives offered so far
are listed.

--to lists the alternatives to a message: all messages of its thread at that place,
edits and other branches included, with the tokens and the time of each. With --retry
it offers one more in the same set, such as another try of the same answer.`,
		Example: `  lineage alternatives --model small-1 --model large-2
  lineage alternatives main --count 3 --json
  lineage alternatives
  lineage alternatives --to :2
  lineage alternatives --to :2 --retry --model large-2`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.Does(func(ctx context.Context, args []string) error {
			name := app.Arg(args, 0)
			switch {
			case o.retry && (o.to == "" || o.count > 0 || len(o.models) > 1):
				return app.Usagef("--retry offers one alternative to a message, which --to names")
			case o.retry:
				return a.Open(ctx, app.Changing, func(ctx context.Context, s *app.OpenStore) error { return retryAlternative(ctx, s, o, name) })
			case o.to != "" && (o.count > 0 || len(o.models) > 0 || name != ""):
				return app.Usagef("--to lists what there is: only with --retry")
			case o.to != "":
				return a.Open(ctx, app.Reading, func(ctx context.Context, s *app.OpenStore) error { return alternativesTo(ctx, s, o.to) })
			case o.count == 0 && len(o.models) == 0:
				return a.OpenContext(ctx, app.Reading, name, listAlternatives)
			}
			return a.OpenContext(ctx, app.Changing, name, func(ctx context.Context, s *app.OpenStore, found *refs.Ref) error {
				return runAlternatives(ctx, s, found, o)
			})
		}),
	}
	c.Flags().IntVar(&o.count, "count", 0, "the number of alternatives")
	c.Flags().StringSliceVar(&o.models, "model", nil, "offer one for this model")
	c.Flags().StringVar(&o.to, "to", "", "list the alternatives to a message")
	c.Flags().BoolVar(&o.retry, "retry", false, "offer one more alternative to the message of --to")
	c.MarkFlagsMutuallyExclusive("count", "model")
	return c
}

func runAlternatives(ctx context.Context, s *app.OpenStore, found *refs.Ref, o *alternativesOptions) error {
	each := make([]lineage.Overrides, max(o.count, len(o.models)))
	for i := range o.models {
		each[i].Model = &o.models[i]
	}
	offered, err := found.Context.Alternatives(ctx, each...)
	if err != nil {
		return err
	}
	for _, c := range offered {
		if err := printAlternative(ctx, s, c); err != nil {
			return err
		}
	}
	s.Note("fill them with 'lineage append ID TEXT', take one with 'lineage choose ID'")
	return nil
}

// printAlternative prints an alternative that a command created.
func printAlternative(ctx context.Context, s *app.OpenStore, c *lineage.Context) error {
	info, err := c.Info(ctx)
	if err != nil {
		return err
	}
	r := &records.Alternative{SpanSet: info.Set.String(), Context: c.ID().String(), Model: show.OrEmpty(info.Overrides.Model)}
	return s.Print(r, "%s\n", r.Context)
}

func retryAlternative(ctx context.Context, s *app.OpenStore, o *alternativesOptions, name string) error {
	found, err := s.Refs.Find(ctx, o.to)
	if err != nil {
		return err
	}
	in, err := threads.Holder(ctx, s, found, name)
	if err != nil {
		return err
	}
	var overrides lineage.Overrides
	if len(o.models) > 0 {
		overrides.Model = &o.models[0]
	}
	offered, err := in.Retry(ctx, found.Span, overrides)
	if err != nil {
		return err
	}
	if err := printAlternative(ctx, s, offered); err != nil {
		return err
	}
	s.Note("fill it with 'lineage append ID TEXT', take it with 'lineage choose ID'")
	return nil
}

func alternativesTo(ctx context.Context, s *app.OpenStore, message string) error {
	found, err := s.Refs.Find(ctx, message)
	if err != nil {
		return err
	}
	in, err := threads.Holder(ctx, s, found, "")
	if err != nil {
		return err
	}
	alternatives, err := in.AlternativesTo(ctx, found.Span)
	if err != nil {
		return err
	}
	list := s.List("", "NUMBER", "MESSAGE", "MODEL", "TOKENS", "COST", "TOOK", "SAYS")
	for i, a := range alternatives {
		r := records.Alternative{
			SpanSet: records.ID(a.Entry.Set), Filled: true, Chosen: a.Current, Model: a.Model, Number: i + 1, Of: len(alternatives), ID: a.Entry.Span.String(), Tip: a.Tip.String(),
			InputTokens: a.Input, OutputTokens: a.Output, Reported: a.Reported, TookMS: a.Took.Milliseconds(),
		}
		if r.Text, err = show.Line(ctx, s, a.Entry); err != nil {
			return err
		}
		used := usage.Of(a.Answers, a.Entry.CreatedAt, prices.Default())
		if len(a.Answers) > 0 {
			figures := used.Record()
			r.Usage = &figures
		}
		tokens := strconv.Itoa(r.OutputTokens)
		if !r.Reported {
			tokens = "~" + tokens
		}
		list.Add(&r, app.MarkCell(r.Chosen), app.PlainCell(fmt.Sprintf("%d of %d", r.Number, r.Of)), app.IDCell(refs.ShortSpan(a.Entry.Span)),
			app.PlainCell(r.Model), app.PlainCell(tokens), show.CostCell(&used), app.PlainCell(a.Took.Round(time.Millisecond).String()), app.PlainCell(r.Text))
	}
	return list.End("")
}

func listAlternatives(ctx context.Context, s *app.OpenStore, found *refs.Ref) error {
	list := s.List("", "SET", "CONTEXT", "MODEL", "SAYS")
	for c, err := range found.Context.Children(ctx) {
		if err != nil {
			return err
		}
		state, err := c.Info(ctx)
		if err != nil {
			return err
		}
		if state.Set.IsZero() {
			continue
		}
		r := records.Alternative{
			SpanSet: state.Set.String(), Context: c.ID().String(), Model: show.OrEmpty(state.Overrides.Model),
			Filled: state.Tip != state.Base, Chosen: state.Tip == found.Span && state.Tip != state.Base,
		}
		if r.Filled {
			last, err := c.Last(ctx, 1)
			if err != nil {
				return err
			}
			for _, e := range last {
				if r.Text, err = show.Line(ctx, s, e); err != nil {
					return err
				}
			}
		}
		text := r.Text
		if !r.Filled {
			text = "(still empty)"
		}
		list.Add(&r, app.MarkCell(r.Chosen), screen.Cell{Text: refs.Short(state.Set), Style: screen.Dim}, app.IDCell(refs.Short(c.ID())), app.PlainCell(r.Model), app.PlainCell(text))
	}
	return list.End("no alternatives; --count or --model offers some")
}
