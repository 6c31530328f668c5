package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/refs"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/lineage"
)

func diffCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "diff A [B]",
		Short: "Compare two histories",
		Long: `Prints the messages of two histories that follow those shared at the start: those only in A with
a minus, those only in B with a plus. B is the active branch unless another is
named. It reads only what is not shared. Exits with 0 whether or not they differ.`,
		Example: `  lineage diff main cheap
  lineage diff start --json`,
		Args: cobra.RangeArgs(1, 2),
		RunE: a.on(reading, func(ctx context.Context, s *session, args []string) error {
			return runDiff(ctx, s, args[0], arg(args, 1))
		}),
	}
}

// diffRecord is a message that only one of two histories has.
type diffRecord struct {
	// Side is a or b.
	Side    string         `json:"side"`
	Message *messageRecord `json:"message"`
}

func (*diffRecord) recordType() string { return "diff" }

// diffSummaryRecord ends what diff prints.
type diffSummaryRecord struct {
	// Common is how many messages they share at the start.
	Common uint64 `json:"common"`
	OnlyA  uint64 `json:"only_a"`
	OnlyB  uint64 `json:"only_b"`
}

func (*diffSummaryRecord) recordType() string { return "diff_summary" }

func runDiff(ctx context.Context, s *session, nameA, nameB string) error {
	a, b, err := s.positions(ctx, nameA, nameB)
	if err != nil {
		return err
	}
	common, err := s.store.CommonPrefix(ctx, a.Span, b.Span)
	if err != nil {
		return err
	}
	summary := diffSummaryRecord{Common: common}
	if !s.json {
		s.printf("%s\n", s.out.Paint(screen.Dim, screen.Plural(common, "message")+" in common"))
	}
	for _, side := range []struct {
		found *refs.Ref
		name  string
		mark  string
		style screen.Style
		count *uint64
	}{{a, "a", "-", screen.Red, &summary.OnlyA}, {b, "b", "+", screen.Green, &summary.OnlyB}} {
		list := s.list("", "", "", "", "")
		for e, err := range s.store.History(ctx, side.found.Span, lineage.Window{From: common + 1}) {
			if err != nil {
				return err
			}
			*side.count++
			m, err := s.listed(ctx, e)
			if err != nil {
				return err
			}
			list.add(&diffRecord{Side: side.name, Message: m}, screen.Cell{Text: side.mark, Style: side.style},
				screen.Cell{Text: screen.Count(m.Position), Right: true, Style: screen.Dim}, idCell(shortID(m.ID)), roleCell(m.speaker(), m.Role),
				screen.Cell{Text: m.preview(), Style: side.style})
		}
		if err := list.end(""); err != nil {
			return err
		}
	}
	if s.json {
		return s.emit(&summary)
	}
	return nil
}
