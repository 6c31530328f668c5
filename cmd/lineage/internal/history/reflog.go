package history

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/show"
	"github.com/lineage-store/lineage/cmd/lineage/internal/threads"
	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage/records"
)

func ReflogCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "reflog [CONTEXT]",
		Short: "List the moves of a context, latest first",
		Long: `Lists the moves of a context other than forward: rewinds in place, replacing merges, choices,
undos. NAME@{-1} is the message that it pointed to before the first move listed, and so on.`,
		Example: `  lineage rewind @{1} --in-place && lineage reflog`,
		Args:    cobra.MaximumNArgs(1),
		RunE:    a.OnContext(app.Reading, runReflog),
	}
}

func runReflog(ctx context.Context, s *app.OpenStore, found *refs.Ref) error {
	moves, err := threads.Collect(found.Context.Reflog(ctx))
	if err != nil {
		return err
	}
	slices.Reverse(moves)
	list := s.List("BEFORE", "WHEN", "FROM", "TO", "WHY")
	for i, m := range moves {
		r := &records.Move{Context: found.Context.ID().String(), Back: i + 1, From: records.SpanID(m.From), To: records.SpanID(m.To), Reason: m.Reason, At: m.At.UTC()}
		list.Add(r, app.IDCell(fmt.Sprintf("%s@{-%d}", show.NameOf(found), r.Back)), app.TimeCell(m.At), app.PlainCell(refs.ShortSpan(m.From)), app.PlainCell(refs.ShortSpan(m.To)), app.PlainCell(m.Reason))
	}
	return list.End("%s has only moved forward", show.NameOf(found))
}
