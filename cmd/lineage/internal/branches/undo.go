package branches

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/cmd/lineage/internal/show"
	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
)

func UndoCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "undo [CONTEXT]",
		Short: "Undo the last move of a context",
		Long: `Undoes the last move of a context: a rewind in place, a replacing merge, another choice. Undoing twice
leads back to where it was. 'lineage reflog' lists the moves. Adding messages is not a move:

  after append or merge  lineage rewind main~1 --in-place  (one message back)
  after rewind or aside  lineage switch main  (the branch it was created from)
  after edit or fork     lineage delete ID  (the original was not changed)`,
		Example: `  lineage rewind @{1} --in-place && lineage undo`,
		Args:    cobra.MaximumNArgs(1),
		RunE:    a.OnContext(app.Changing, runUndo),
	}
}

// nothingToUndo is the error for a context without a move to undo. It matches lineage.ErrNotFound.
type nothingToUndo struct {
	name, hint string
}

func (e *nothingToUndo) Error() string {
	return "nothing to undo: " + e.name + " was extended, but never moved back or replaced"
}

func (e *nothingToUndo) Unwrap() error { return lineage.ErrNotFound }

func (e *nothingToUndo) Hint() string { return e.hint }

func runUndo(ctx context.Context, s *app.OpenStore, found *refs.Ref) error {
	var last *lineage.Move
	for m, err := range found.Context.Reflog(ctx) {
		if err != nil {
			return err
		}
		last = &m
	}
	if last == nil {
		return explainNothingToUndo(ctx, s, found)
	}
	from := found.Span
	if err := found.Context.Undo(ctx); err != nil {
		return fmt.Errorf("undo the %s of %s: %w", last.Reason, show.NameOf(found), err)
	}
	if from != last.To {
		s.Warn("%s was extended after the %s that was undone: 'lineage undo' again restores those messages", show.NameOf(found), last.Reason)
	}
	s.Note("undone: %s of %s", last.Reason, screen.Time(last.At))
	return show.Moved(ctx, s, found, from)
}

// explainNothingToUndo returns the error, with a hint at commands that undo other changes.
func explainNothingToUndo(ctx context.Context, s *app.OpenStore, found *refs.Ref) error {
	info, err := found.Context.Info(ctx)
	if err != nil {
		return err
	}
	name := show.NameOf(found)
	var instead []string
	if !found.Span.IsZero() {
		instead = append(instead, fmt.Sprintf("after append or merge, 'lineage rewind %s~1 --in-place' goes one message back", name))
	}
	if !info.Parent.IsZero() {
		parent, err := s.Refs.Context(ctx, info.Parent.String())
		if err != nil && !errors.Is(err, lineage.ErrNotFound) {
			return err
		}
		if err == nil && parent.Branch != "" && found.Branch != "" {
			instead = append(instead, fmt.Sprintf("after rewind or aside, 'lineage switch %s' switches back to the branch that %s was created from", parent.Branch, name))
		}
	}
	instead = append(instead, "edit and fork changed nothing here: 'lineage delete ID' deletes what they created")
	return &nothingToUndo{name, strings.Join(instead, "; ")}
}
