package branches

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/show"
	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
)

type returnOptions struct{ text, role, name string }

func ReturnCommand(a *app.App) *cobra.Command {
	o := &returnOptions{}
	c := &cobra.Command{
		Use:   "return CONTEXT [TEXT]",
		Short: "Append the result of a subagent to its parent",
		Long: `Appends what a subagent found to its parent, as a message whose origin leads back to the
subagent. Without a text it is the last message of the subagent.`,
		Example: `  id=$(lineage subagent) && lineage return $id "Three places, all closed on Monday."`,
		Args:    cobra.RangeArgs(1, 2),
		RunE: a.Does(func(ctx context.Context, args []string) error {
			o.text = app.Arg(args, 1)
			return a.OpenContext(ctx, app.Changing, args[0], func(ctx context.Context, s *app.OpenStore, found *refs.Ref) error { return runReturn(ctx, s, found, o) })
		}),
	}
	c.Flags().StringVarP(&o.role, "role", "r", "assistant", "the role in the parent")
	c.Flags().StringVar(&o.name, "name", "", "the name of the subagent in the parent")
	return c
}

func runReturn(ctx context.Context, s *app.OpenStore, found *refs.Ref, o *returnOptions) error {
	item := lineage.Item{Role: o.role, Body: []byte(o.text)}
	if o.text == "" {
		var err error
		if item, err = found.Context.Result(ctx, o.role); err != nil {
			return err
		}
	}
	item.Name = o.name
	info, err := found.Context.Info(ctx)
	if err != nil {
		return err
	}
	ref, err := found.Context.Return(ctx, item)
	if err != nil {
		return err
	}
	return show.Sent(s, found.Context.ID().String(), info.Parent.String(), ref)
}
