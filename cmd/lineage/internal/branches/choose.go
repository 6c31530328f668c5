package branches

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/show"
)

type chooseOptions struct{ alternative, context string }

func ChooseCommand(a *app.App) *cobra.Command {
	o := &chooseOptions{}
	c := &cobra.Command{
		Use:   "choose ALTERNATIVE",
		Short: "Choose one of the alternatives of a context",
		Long: `Continues the context that alternatives were created for with one of them. The others stay
and can be chosen instead later.`,
		Example: `  id=$(lineage alternatives --count 1) && lineage append $id "By tram." && lineage choose $id`,
		Args:    cobra.ExactArgs(1),
		RunE: a.On(app.Changing, func(ctx context.Context, s *app.OpenStore, args []string) error {
			o.alternative = args[0]
			return runChoose(ctx, s, o)
		}),
	}
	c.Flags().StringVar(&o.context, "in", "", "the context to continue with it; the parent of the alternative by default")
	return c
}

func runChoose(ctx context.Context, s *app.OpenStore, o *chooseOptions) error {
	alternative, err := s.Refs.Context(ctx, o.alternative)
	if err != nil {
		return err
	}
	name := o.context
	if name == "" {
		info, err := alternative.Context.Info(ctx)
		if err != nil {
			return err
		}
		if info.Parent.IsZero() {
			return app.Usagef("context %s is not an alternative", alternative.Context.ID())
		}
		name = info.Parent.String()
	}
	target, err := s.Refs.Context(ctx, name)
	if err != nil {
		return err
	}
	from := target.Span
	if err := target.Context.Choose(ctx, alternative.Context); err != nil {
		return err
	}
	return show.Moved(ctx, s, target, from)
}
