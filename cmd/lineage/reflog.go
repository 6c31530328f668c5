package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage/records"
)

func reflogCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "reflog [CONTEXT]",
		Short: "List the moves of a context, latest first",
		Long: `Lists the moves of a context other than forward: rewinds in place, replacing merges, choices,
undos. NAME@{-1} is the message that it pointed to before the first move listed, and so on.`,
		Example: `  lineage rewind @{1} --in-place && lineage reflog`,
		Args:    cobra.MaximumNArgs(1),
		RunE:    a.onContext(reading, runReflog),
	}
}

func runReflog(ctx context.Context, s *session, found *refs.Ref) error {
	moves, _, err := pageOf(found.Context.Reflog(ctx), 0)
	if err != nil {
		return err
	}
	slices.Reverse(moves)
	list := s.list("BEFORE", "WHEN", "FROM", "TO", "WHY")
	for i, m := range moves {
		r := &records.Move{Context: found.Context.ID().String(), Back: i + 1, From: records.SpanID(m.From), To: records.SpanID(m.To), Reason: m.Reason, At: m.At.UTC()}
		list.add(r, idCell(fmt.Sprintf("%s@{-%d}", nameOf(found), r.Back)), timeCell(m.At), plainCell(refs.ShortSpan(m.From)), plainCell(refs.ShortSpan(m.To)), plainCell(m.Reason))
	}
	return list.end("%s has only moved forward", nameOf(found))
}
