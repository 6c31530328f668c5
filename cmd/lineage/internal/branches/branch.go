// Package branches has the commands that fork, move, name and merge branches and contexts.
package branches

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/cmd/lineage/internal/show"
	"github.com/lineage-store/lineage/cmd/lineage/internal/threads"
)

func BranchCommand(a *app.App) *cobra.Command {
	o := &threads.BranchOptions{}
	c := &cobra.Command{
		Use:   "branch [NAME]",
		Short: "List the branches of a thread, or create one",
		Long: `Lists the branches of the thread, or creates one at the tip of the active branch, or at any
position with --from. A name that reads as a position (main~1, main:2) is refused.`,
		Example: `  lineage branch
  lineage branch museums --from :2 --switch
  lineage branch blank --empty --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.Does(func(ctx context.Context, args []string) error {
			o.Name = app.Arg(args, 0)
			if len(args) == 0 {
				if o.From != "" || o.Empty || o.SwitchTo {
					return app.Usagef("a new branch needs a name")
				}
				return threads.Open(ctx, a, app.Reading, func(ctx context.Context, in threads.Keeper) error { return runBranchList(ctx, a, in) })
			}
			if err := app.NewName(o.Name); err != nil {
				return err
			}
			return threads.Open(ctx, a, app.Changing, func(ctx context.Context, in threads.Keeper) error {
				b, err := in.CreateBranch(ctx, o)
				return show.PrintBranch(a, b, "now on branch", err)
			})
		}),
	}
	f := c.Flags()
	f.StringVar(&o.From, "from", "", "where it starts")
	f.BoolVar(&o.Empty, "empty", false, "start with an empty history")
	f.BoolVarP(&o.SwitchTo, "switch", "s", false, "make it the active branch")
	o.Overrides.Bind(c)
	return c
}

func runBranchList(ctx context.Context, a *app.App, in threads.Keeper) error {
	branches, err := in.ListBranches(ctx, "")
	if err != nil {
		return err
	}
	list := a.List("", "BRANCH", "CONTEXT", "CHANGED", "MESSAGES", "SAYS LAST")
	for _, b := range branches {
		note := ""
		if b.Head != nil && !a.JSON {
			if note, err = in.Says(ctx, b.Thread, *b.Head); err != nil {
				return err
			}
		}
		changed := b.UpdatedAt
		if changed.IsZero() {
			changed = b.CreatedAt // a database keeps only this time
		}
		mark := app.MarkCell(b.Active)
		list.Add(b, mark, screen.Cell{Text: b.Name, Style: mark.Style}, app.IDCell(show.ShortID(b.Context)), app.TimeCell(changed), app.CountCell(b.Length), app.PlainCell(note))
	}
	return list.End("")
}
