package branches

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/show"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/structure"
)

type mergeOptions struct {
	source, target string
	replace        bool
}

func MergeCommand(a *app.App) *cobra.Command {
	o := &mergeOptions{}
	c := &cobra.Command{
		Use:   "merge SOURCE [TARGET]",
		Short: "Merge the messages of one context into another",
		Long: `Appends to the target, the active branch unless another is named, what the source has since
the two parted and the target does not have yet: merging twice adds nothing twice. With
--replace the target moves to the tip of the source instead, which 'lineage undo'
undoes.`,
		Example: `  lineage merge cheap
  lineage merge main cheap --replace --json`,
		Args: cobra.RangeArgs(1, 2),
		RunE: a.On(app.Changing, func(ctx context.Context, s *app.OpenStore, args []string) error {
			o.source, o.target = args[0], app.Arg(args, 1)
			return runMerge(ctx, s, o)
		}),
	}
	c.Flags().BoolVar(&o.replace, "replace", false, "move the target to the tip of the source")
	return c
}

func runMerge(ctx context.Context, s *app.OpenStore, o *mergeOptions) error {
	source, err := s.Refs.Context(ctx, o.source)
	if err != nil {
		return err
	}
	target, err := s.Refs.Context(ctx, o.target)
	if err != nil {
		return err
	}
	common, err := structure.CommonAncestor(target.Span, source.Span, backend.Runs(ctx, s.Store.View()))
	if err != nil {
		return err
	}
	var added []lineage.SpanRef
	strategy := "append"
	if o.replace {
		strategy = "replace"
		err = target.Context.MoveTo(ctx, source.Span, "replace")
	} else {
		added, err = target.Context.Merge(ctx, source.Context)
	}
	if err != nil {
		return err
	}
	tip, err := target.Context.Tip(ctx)
	if err != nil {
		return err
	}
	r := records.Merged{
		Source: source.Context.ID().String(), Target: target.Context.ID().String(), Strategy: strategy,
		Common: records.SpanID(common), Added: []string{}, Tip: records.SpanID(tip),
	}
	if r.Length, err = s.Store.Position(ctx, tip); err != nil {
		return err
	}
	for _, ref := range added {
		r.Added = append(r.Added, ref.String())
	}
	if o.replace {
		return s.Print(&r, "%s is at the tip of %s, %s\n", show.NameOf(target), show.NameOf(source), amount.Plural(r.Length, "message"))
	}
	return s.Print(&r, "added %s of %s to %s, which has %d now\n", amount.Plural(len(r.Added), "message"), show.NameOf(source), show.NameOf(target), r.Length)
}
