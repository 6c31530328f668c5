package conversations

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/cmd/lineage/internal/show"
	"github.com/lineage-store/lineage/cmd/lineage/internal/threads"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/lineage/records"
)

func threadShowCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:     "show [THREAD]",
		Short:   "Show a thread",
		Example: `  lineage thread show lisbon`,
		Args:    cobra.MaximumNArgs(1),
		RunE: threads.On(a, app.Reading, func(ctx context.Context, in threads.Keeper, args []string) error {
			r, err := in.FindThread(ctx, app.Arg(args, 0))
			return printThread(a, r, err)
		}),
	}
}

// printThread prints a thread that a command found or changed, unless err is set.
func printThread(a *app.App, r *records.Thread, err error) error {
	if err != nil {
		return err
	}
	ofSubagents := ""
	if r.SubagentMessages > 0 {
		ofSubagents = amount.Count(r.SubagentMessages)
	}
	return a.Facts(r, [][2]string{
		{"thread", r.ID}, {"id", r.SourceID}, {"title", r.Title}, {"user", r.User},
		{"branch", r.Branch}, {"branches", amount.Count(r.Branches)}, {"messages", amount.Count(r.Messages)}, {"of subagents", ofSubagents}, {"used", show.UsedText(r.Usage)},
		{"created", screen.Time(r.CreatedAt)}, {"changed", screen.Time(r.UpdatedAt)}, {"metadata", string(r.Metadata)},
	}...)
}
