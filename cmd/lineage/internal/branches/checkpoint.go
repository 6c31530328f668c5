package branches

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/cmd/lineage/internal/show"
	"github.com/lineage-store/lineage/cmd/lineage/internal/threads"
)

func CheckpointCommand(a *app.App) *cobra.Command {
	o := &threads.CheckpointOptions{}
	c := &cobra.Command{
		Use:     "checkpoint [NAME]",
		Aliases: []string{"checkpoints"},
		Short:   "List the checkpoints of a thread, or set one",
		Long: `Lists the checkpoints of the thread, or sets one: a name for the last message of the active branch,
or for the message that --at names. An existing checkpoint of that name is moved.`,
		Example: `  lineage checkpoint
  lineage checkpoint booked
  lineage checkpoint first --at :1 --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.Does(func(ctx context.Context, args []string) error {
			o.Name = app.Arg(args, 0)
			if len(args) == 0 {
				if o.At != "" {
					return app.Usagef("a new checkpoint needs a name")
				}
				return threads.Open(ctx, a, app.Reading, func(ctx context.Context, in threads.Keeper) error { return runCheckpointList(ctx, a, in) })
			}
			if err := app.NewName(o.Name); err != nil {
				return err
			}
			return threads.Open(ctx, a, app.Changing, func(ctx context.Context, in threads.Keeper) error { return runCheckpoint(ctx, a, in, o) })
		}),
	}
	c.Flags().StringVar(&o.At, "at", "", "the message it names")
	return c
}

func runCheckpointList(ctx context.Context, a *app.App, in threads.Keeper) error {
	checkpoints, err := in.ListCheckpoints(ctx, "")
	if err != nil {
		return err
	}
	list := a.List("CHECKPOINT", "SET", "POSITION", "MESSAGE", "SAYS")
	for _, c := range checkpoints {
		note := ""
		if !a.JSON {
			if note, err = in.Says(ctx, c.Thread, c.Message); err != nil {
				return err
			}
		}
		list.Add(c, app.IDCell(c.Name), app.TimeCell(c.CreatedAt), app.CountCell(c.Position), app.PlainCell(show.ShortID(c.Message)), app.PlainCell(note))
	}
	return list.End("no checkpoints; 'lineage checkpoint NAME' puts one")
}

func runCheckpoint(ctx context.Context, a *app.App, in threads.Keeper, o *threads.CheckpointOptions) error {
	c, err := in.SetCheckpoint(ctx, o)
	if err != nil {
		return err
	}
	return a.Print(c, "checkpoint %s at message %d, %s\n", screen.Line(c.Name), c.Position, screen.Line(show.ShortID(c.Message)))
}
