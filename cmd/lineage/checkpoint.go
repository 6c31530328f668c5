package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/refs"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/lineage"
)

type checkpointOptions struct{ name, at string }

func checkpointCommand(a *app) *cobra.Command {
	o := &checkpointOptions{}
	c := &cobra.Command{
		Use:     "checkpoint [NAME]",
		Aliases: []string{"checkpoints"},
		Short:   "List the checkpoints of a thread, or set one",
		Long: `Lists the checkpoints of the thread, or puts one: a name for a message, where the active branch
stands unless --at says otherwise. A name that is taken moves there.`,
		Example: `  lineage checkpoint
  lineage checkpoint booked
  lineage checkpoint first --at :1 --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) error {
			o.name = arg(args, 0)
			if len(args) == 0 {
				if o.at != "" {
					return usagef("a checkpoint to put needs a name")
				}
				return runCheckpointList(ctx, a)
			}
			return runCheckpoint(ctx, a, o)
		}),
	}
	c.Flags().StringVar(&o.at, "at", "", "the message it names")
	return c
}

// checkpointRecord is a checkpoint.
type checkpointRecord struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Thread string `json:"thread"`
	// Message is the message that it names, and Position its place in its history.
	Message   string    `json:"message"`
	Position  uint64    `json:"position"`
	CreatedAt time.Time `json:"created_at"`
}

func (*checkpointRecord) recordType() string { return "checkpoint" }

func (s *session) checkpointRecord(ctx context.Context, t *lineage.Thread, c lineage.CheckpointInfo) (*checkpointRecord, error) {
	position, err := s.store.Position(ctx, c.Span)
	if err != nil {
		return nil, err
	}
	return &checkpointRecord{
		ID: c.ID.String(), Name: c.Name, Thread: t.ID().String(), Message: c.Span.String(), Position: position, CreatedAt: c.CreatedAt.UTC(),
	}, nil
}

func runCheckpointList(ctx context.Context, a *app) error {
	if a.dsn() != "" {
		return a.onDB(ctx, func(ctx context.Context, d *database) error { return d.listCheckpoints(ctx) })
	}
	return a.open(ctx, reading, listCheckpoints)
}

func listCheckpoints(ctx context.Context, s *session) error {
	t, err := s.needThread()
	if err != nil {
		return err
	}
	checkpoints, err := t.Checkpoints(ctx)
	if err != nil {
		return err
	}
	table := screen.NewTable(s.out, "CHECKPOINT", "SET", "POSITION", "MESSAGE", "SAYS")
	for _, c := range checkpoints {
		r, err := s.checkpointRecord(ctx, t, c)
		if err != nil {
			return err
		}
		if s.json {
			if err := s.emit(r); err != nil {
				return err
			}
			continue
		}
		entries, err := s.store.Span(ctx, c.Span)
		if err != nil {
			return err
		}
		says, err := s.preview(ctx, entries[0])
		if err != nil {
			return err
		}
		table.Cells(screen.Cell{Text: c.Name, Style: screen.Yellow}, screen.Cell{Text: screen.Time(c.CreatedAt), Style: screen.Dim},
			screen.Cell{Text: screen.Count(int64(r.Position)), Right: true}, screen.Cell{Text: refs.ShortSpan(c.Span)}, screen.Cell{Text: says})
	}
	if s.json {
		return nil
	}
	if len(checkpoints) == 0 {
		s.note("no checkpoints; 'lineage checkpoint NAME' puts one")
		return nil
	}
	return table.Print()
}

func runCheckpoint(ctx context.Context, a *app, o *checkpointOptions) error {
	if err := newName(o.name); err != nil {
		return err
	}
	if a.dsn() != "" {
		return a.onDB(ctx, func(ctx context.Context, d *database) error { return d.putCheckpoint(ctx, o) })
	}
	return a.open(ctx, changing, func(ctx context.Context, s *session) error {
		t, err := s.needThread()
		if err != nil {
			return err
		}
		var at lineage.SpanRef
		if o.at != "" {
			found, err := s.refs.Find(ctx, o.at)
			if err != nil {
				return err
			}
			if at = found.Span; at.IsZero() {
				return fmt.Errorf("checkpoint %q: no message at %q: %w", o.name, o.at, lineage.ErrInvalid)
			}
		}
		c, err := t.SetCheckpoint(ctx, o.name, lineage.CheckpointOptions{At: at})
		if err != nil {
			return err
		}
		r, err := s.checkpointRecord(ctx, t, c)
		if err != nil {
			return err
		}
		return s.print(r, "checkpoint %s at message %d, %s\n", screen.Line(c.Name), r.Position, refs.ShortSpan(c.Span))
	})
}
