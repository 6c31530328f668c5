package main

import (
	"context"

	"github.com/spf13/cobra"
)

func sendCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "send MESSAGE CONTEXT",
		Short: "Send a message to another context",
		Long: `Appends a message of one context to another. Both use the same content, and the new message
records which context it came from.`,
		Example: `  lineage send main:2 cheap`,
		Args:    cobra.ExactArgs(2),
		RunE:    a.on(changing, func(ctx context.Context, s *session, args []string) error { return runSend(ctx, s, args[0], args[1]) }),
	}
}

func runSend(ctx context.Context, s *session, message, context string) error {
	from, err := s.refs.Find(ctx, message)
	if err != nil {
		return err
	}
	e, err := s.refs.Entry(ctx, from)
	if err != nil {
		return err
	}
	to, err := s.refs.Context(ctx, context)
	if err != nil {
		return err
	}
	source, err := s.contextOf(ctx, from)
	if err != nil {
		return err
	}
	ref, err := source.Context.Send(ctx, to.Context, e.Item())
	if err != nil {
		return err
	}
	return s.sent(source.Context.ID().String(), to.Context.ID().String(), ref)
}
