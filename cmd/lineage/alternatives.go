package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/refs"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/lineage"
)

type alternativesOptions struct {
	context string
	count   int
	models  []string
}

func alternativesCommand(a *app) *cobra.Command {
	o := &alternativesOptions{}
	c := &cobra.Command{
		Use:   "alternatives [CONTEXT]",
		Short: "Offer several continuations of a context, or list them",
		Long: `Offers several continuations at the place where a context stands: a context for each, to
be filled with 'lineage append' in any order. The context stays where it is until one is
taken with 'lineage choose'. Without --count and --model the alternatives offered so far
are listed.`,
		Example: `  lineage alternatives --model small-1 --model large-2
  lineage alternatives main --count 3 --json
  lineage alternatives`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) error {
			o.context = arg(args, 0)
			if o.count > 0 && len(o.models) > 0 {
				return usagef("--count and --model cannot be given both: there is an alternative for each model")
			}
			if o.count == 0 && len(o.models) == 0 {
				return a.read(ctx, func(ctx context.Context, s *session) error { return listAlternatives(ctx, s, o.context) })
			}
			return a.change(ctx, func(ctx context.Context, s *session) error { return runAlternatives(ctx, s, o) })
		}),
	}
	c.Flags().IntVar(&o.count, "count", 0, "how many to offer")
	c.Flags().StringSliceVar(&o.models, "model", nil, "offer one that is asked of this model")
	return c
}

// alternativeRecord is one of several continuations.
type alternativeRecord struct {
	SpanSet string `json:"span_set"`
	Context string `json:"context"`
	Model   string `json:"model,omitempty"`
	// Filled is set when something was appended to it.
	Filled bool `json:"filled"`
	// Chosen is set when the context it is offered to goes on with it.
	Chosen bool   `json:"chosen"`
	Text   string `json:"text,omitempty"`
}

func (*alternativeRecord) recordType() string { return "alternative" }

func runAlternatives(ctx context.Context, s *session, o *alternativesOptions) error {
	found, err := s.context(ctx, o.context)
	if err != nil {
		return err
	}
	each := make([]lineage.Overrides, max(o.count, len(o.models)))
	for i := range o.models {
		each[i].Model = &o.models[i]
	}
	offered, err := found.Context.Alternatives(ctx, each...)
	if err != nil {
		return err
	}
	info, err := offered[0].Info(ctx)
	if err != nil {
		return err
	}
	for i, c := range offered {
		r := alternativeRecord{SpanSet: info.Set.String(), Context: c.ID().String()}
		if len(o.models) > 0 {
			r.Model = o.models[i]
		}
		if s.json {
			if err := s.emit(&r); err != nil {
				return err
			}
			continue
		}
		s.printf("%s\n", c.ID())
	}
	s.note("fill them with 'lineage append ID TEXT', take one with 'lineage choose ID'")
	return nil
}

func listAlternatives(ctx context.Context, s *session, name string) error {
	found, err := s.context(ctx, name)
	if err != nil {
		return err
	}
	tip, err := found.Context.Tip(ctx)
	if err != nil {
		return err
	}
	table := screen.NewTable(s.out, "", "SET", "CONTEXT", "MODEL", "SAYS")
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
		r := alternativeRecord{
			SpanSet: state.Set.String(), Context: c.ID().String(), Model: text(state.Overrides.Model),
			Filled: state.Tip != state.Base, Chosen: state.Tip == tip && state.Tip != state.Base,
		}
		if r.Filled {
			last, err := c.Last(ctx, 1)
			if err != nil {
				return err
			}
			for _, e := range last {
				if r.Text, err = s.preview(ctx, e); err != nil {
					return err
				}
			}
		}
		if s.json {
			if err := s.emit(&r); err != nil {
				return err
			}
			continue
		}
		mark, says := " ", r.Text
		if r.Chosen {
			mark = "*"
		}
		if !r.Filled {
			says = "(still empty)"
		}
		table.Cells(screen.Cell{Text: mark, Style: screen.Green}, screen.Cell{Text: refs.Short(state.Set), Style: screen.Dim},
			screen.Cell{Text: refs.Short(c.ID()), Style: screen.Yellow}, screen.Cell{Text: r.Model}, screen.Cell{Text: says})
	}
	if s.json {
		return nil
	}
	if table.Len() == 0 {
		s.note("no alternatives; --count or --model offers some")
		return nil
	}
	return table.Print()
}
