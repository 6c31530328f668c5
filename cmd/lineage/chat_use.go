package main

import (
	"context"

	"github.com/spf13/cobra"
)

func chatUseCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "use CHAT",
		Short:   "Choose the chat that commands work on",
		Example: `  lineage chat use lisbon`,
		Args:    cobra.ExactArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) error {
			return a.open(ctx, openMode{noChat: true}, func(ctx context.Context, s *session) error { return runChatUse(ctx, s, args[0]) })
		}),
	}
}

func runChatUse(ctx context.Context, s *session, name string) error {
	t, err := s.refs.Thread(ctx, name)
	if err != nil {
		return err
	}
	if err := s.useChat(t.ID()); err != nil {
		return err
	}
	s.thread = t
	r, err := s.chatRecord(ctx, t)
	if err != nil {
		return err
	}
	if s.json {
		return s.emit(r)
	}
	info, err := t.Info(ctx)
	if err != nil {
		return err
	}
	s.printf("now on %s, branch %s\n", titleOf(info), r.Branch)
	return nil
}
