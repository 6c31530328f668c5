package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/structure"
)

type mergeOptions struct {
	source, target string
	replace        bool
}

func mergeCommand(a *app) *cobra.Command {
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
		RunE: a.on(changing, func(ctx context.Context, s *session, args []string) error {
			o.source, o.target = args[0], arg(args, 1)
			return runMerge(ctx, s, o)
		}),
	}
	c.Flags().BoolVar(&o.replace, "replace", false, "move the target to the tip of the source")
	return c
}

func runMerge(ctx context.Context, s *session, o *mergeOptions) error {
	source, err := s.refs.Context(ctx, o.source)
	if err != nil {
		return err
	}
	target, err := s.refs.Context(ctx, o.target)
	if err != nil {
		return err
	}
	common, err := structure.CommonAncestor(target.Span, source.Span, backend.Runs(ctx, s.store.View()))
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
	if r.Length, err = s.store.Position(ctx, tip); err != nil {
		return err
	}
	for _, ref := range added {
		r.Added = append(r.Added, ref.String())
	}
	if o.replace {
		return s.print(&r, "%s is at the tip of %s, %s\n", nameOf(target), nameOf(source), screen.Plural(r.Length, "message"))
	}
	return s.print(&r, "added %s of %s to %s, which has %d now\n", screen.Plural(len(r.Added), "message"), nameOf(source), nameOf(target), r.Length)
}
