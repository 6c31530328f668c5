package history

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/lineage/records"
)

func CommonPrefixCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "common-prefix A [B]",
		Short: "Count the messages that two histories share at the start",
		Long: `Counts the messages that two histories have in common at the start, shared or not: it compares digests
and reads a few messages only. B is the active branch unless another is named.`,
		Example: `  lineage common-prefix main cheap`,
		Args:    cobra.RangeArgs(1, 2),
		RunE: a.On(app.Reading, func(ctx context.Context, s *app.OpenStore, args []string) error {
			return runCommonPrefix(ctx, s, args[0], app.Arg(args, 1))
		}),
	}
}

func runCommonPrefix(ctx context.Context, s *app.OpenStore, nameA, nameB string) error {
	a, b, err := s.Positions(ctx, nameA, nameB)
	if err != nil {
		return err
	}
	var r records.CommonPrefix
	if r.Length, err = s.Store.CommonPrefix(ctx, a.Span, b.Span); err != nil {
		return err
	}
	if r.LengthA, err = s.Store.Position(ctx, a.Span); err != nil {
		return err
	}
	if r.LengthB, err = s.Store.Position(ctx, b.Span); err != nil {
		return err
	}
	last := a.Span
	if r.Length < r.LengthA {
		if last, err = s.Store.At(ctx, a.Span, r.Length); err != nil {
			return err
		}
	}
	r.Last = records.SpanID(last)
	digest, err := s.Store.View().Digest(ctx, last)
	if err != nil {
		return err
	}
	r.Digest = digest.String()
	err = s.Print(&r, "%d\n", r.Length)
	s.Note("of %s and %s", amount.Plural(r.LengthA, "message"), amount.Plural(r.LengthB, "message"))
	return err
}
