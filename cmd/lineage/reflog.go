package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/refs"
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

// moveRecord is a move in a context's past.
type moveRecord struct {
	Context string `json:"context"`
	// Back counts from the last move, 1. CONTEXT@{-BACK} is the tip before the move.
	Back   int       `json:"back"`
	From   *string   `json:"from"`
	To     *string   `json:"to"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

func (*moveRecord) recordType() string { return "move" }

func runReflog(ctx context.Context, s *session, found *refs.Ref) error {
	moves, _, err := pageOf(found.Context.Reflog(ctx), 0)
	if err != nil {
		return err
	}
	slices.Reverse(moves)
	list := s.list("BEFORE", "WHEN", "FROM", "TO", "WHY")
	for i, m := range moves {
		r := &moveRecord{Context: found.Context.ID().String(), Back: i + 1, From: spanID(m.From), To: spanID(m.To), Reason: m.Reason, At: m.At.UTC()}
		list.add(r, idCell(fmt.Sprintf("%s@{-%d}", nameOf(found), r.Back)), timeCell(m.At), plainCell(refs.ShortSpan(m.From)), plainCell(refs.ShortSpan(m.To)), plainCell(m.Reason))
	}
	return list.end("%s has only moved forward", nameOf(found))
}
