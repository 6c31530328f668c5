package history

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/show"
)

func SendCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "send MESSAGE CONTEXT",
		Short: "Send a message to another context",
		Long: `Appends a message of one context to another. Both use the same content, and the new message
records which context it came from.`,
		Example: `  lineage send main:2 cheap`,
		Args:    cobra.ExactArgs(2),
		RunE: a.On(app.Changing, func(ctx context.Context, s *app.OpenStore, args []string) error {
			return runSend(ctx, s, args[0], args[1])
		}),
	}
}

func runSend(ctx context.Context, s *app.OpenStore, message, context string) error {
	from, err := s.Refs.Find(ctx, message)
	if err != nil {
		return err
	}
	e, err := s.Refs.Entry(ctx, from)
	if err != nil {
		return err
	}
	to, err := s.Refs.Context(ctx, context)
	if err != nil {
		return err
	}
	source, err := s.ContextOf(ctx, from)
	if err != nil {
		return err
	}
	ref, err := source.Context.Send(ctx, to.Context, e.Item())
	if err != nil {
		return err
	}
	return show.Sent(s, source.Context.ID().String(), to.Context.ID().String(), ref)
}
