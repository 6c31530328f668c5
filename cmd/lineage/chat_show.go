package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/lineage"
)

func chatShowCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "show [CHAT]",
		Short:   "Tell about a chat",
		Example: `  lineage chat show lisbon`,
		Args:    cobra.MaximumNArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) error {
			if a.dsn() != "" {
				return a.onDB(ctx, func(ctx context.Context, d *database) error { return d.showChat(ctx, arg(args, 0)) })
			}
			return a.read(ctx, func(ctx context.Context, s *session) error { return runChatShow(ctx, s, arg(args, 0)) })
		}),
	}
}

// chatNamed returns the chat with a name; an empty name is the current chat's.
func (s *session) chatNamed(ctx context.Context, name string) (*lineage.Thread, error) {
	if name == "" {
		return s.needChat()
	}
	return s.refs.Thread(ctx, name)
}

func runChatShow(ctx context.Context, s *session, name string) error {
	t, err := s.chatNamed(ctx, name)
	if err != nil {
		return err
	}
	r, err := s.chatRecord(ctx, t)
	if err != nil {
		return err
	}
	return s.printChat(r)
}

// printChat tells about a chat.
func (a *app) printChat(r *chatRecord) error {
	if a.json {
		return a.emit(r)
	}
	table := screen.NewTable(a.out, "", "")
	for _, row := range [][2]string{
		{"chat", r.ID}, {"id", r.SourceID}, {"title", r.Title}, {"user", r.User},
		{"branch", r.Branch}, {"branches", screen.Count(int64(r.Branches))}, {"messages", screen.Count(int64(r.Messages))},
		{"created", screen.Time(r.CreatedAt)}, {"changed", screen.Time(r.UpdatedAt)}, {"metadata", string(r.Metadata)},
	} {
		if row[1] != "" {
			table.Row(row[0], row[1])
		}
	}
	return table.Print()
}
