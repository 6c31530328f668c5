package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
)

type checkpointOptions struct{ name, at string }

func checkpointCommand(a *app) *cobra.Command {
	o := &checkpointOptions{}
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
		RunE: a.does(func(ctx context.Context, args []string) error {
			o.name = arg(args, 0)
			if len(args) == 0 {
				if o.at != "" {
					return usagef("a new checkpoint needs a name")
				}
				return a.openThreads(ctx, reading, func(ctx context.Context, in threads) error { return runCheckpointList(ctx, a, in) })
			}
			if err := newName(o.name); err != nil {
				return err
			}
			return a.openThreads(ctx, changing, func(ctx context.Context, in threads) error { return runCheckpoint(ctx, a, in, o) })
		}),
	}
	c.Flags().StringVar(&o.at, "at", "", "the message it names")
	return c
}

func runCheckpointList(ctx context.Context, a *app, in threads) error {
	checkpoints, err := in.listCheckpoints(ctx, "")
	if err != nil {
		return err
	}
	list := a.list("CHECKPOINT", "SET", "POSITION", "MESSAGE", "SAYS")
	for _, c := range checkpoints {
		says := ""
		if !a.json {
			if says, err = in.says(ctx, c.Thread, c.Message); err != nil {
				return err
			}
		}
		list.add(c, idCell(c.Name), timeCell(c.CreatedAt), countCell(c.Position), plainCell(shortID(c.Message)), plainCell(says))
	}
	return list.end("no checkpoints; 'lineage checkpoint NAME' puts one")
}

// listCheckpoints implements threads.
func (s *session) listCheckpoints(ctx context.Context, thread string) (list []*records.Checkpoint, err error) {
	t, err := s.threadNamed(ctx, thread)
	if err != nil {
		return nil, err
	}
	checkpoints, err := t.Checkpoints(ctx)
	for _, c := range checkpoints {
		r, err := records.OfCheckpoint(ctx, s.store, t, c)
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, err
}

func runCheckpoint(ctx context.Context, a *app, in threads, o *checkpointOptions) error {
	c, err := in.setCheckpoint(ctx, o)
	if err != nil {
		return err
	}
	return a.print(c, "checkpoint %s at message %d, %s\n", screen.Line(c.Name), c.Position, screen.Line(shortID(c.Message)))
}

// setCheckpoint implements threads.
func (s *session) setCheckpoint(ctx context.Context, o *checkpointOptions) (*records.Checkpoint, error) {
	t, err := s.needThread()
	if err != nil {
		return nil, err
	}
	var at lineage.SpanRef
	if o.at != "" {
		found, err := s.refs.Find(ctx, o.at)
		if err != nil {
			return nil, err
		}
		if at = found.Span; at.IsZero() {
			return nil, fmt.Errorf("checkpoint %q: no message at %q: %w", o.name, o.at, lineage.ErrInvalid)
		}
	}
	c, err := t.SetCheckpoint(ctx, o.name, lineage.CheckpointOptions{At: at})
	if err != nil {
		return nil, err
	}
	return records.OfCheckpoint(ctx, s.store, t, c)
}
