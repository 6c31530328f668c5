package main

import (
	"context"

	"github.com/spf13/cobra"
)

func chatDeleteCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "delete CHAT",
		Short: "Delete a chat with its branches, contexts and checkpoints",
		Long: `Deletes a chat with its branches, contexts and checkpoints. What other chats share with
it stays theirs. The bytes that nobody else uses stay on disk until they are collected.`,
		Example: `  lineage chat delete lisbon`,
		Args:    cobra.ExactArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) error {
			if a.dsn() != "" {
				return a.onDB(ctx, func(ctx context.Context, d *database) error { return d.deleteChat(ctx, args[0]) })
			}
			return a.change(ctx, func(ctx context.Context, s *session) error { return runChatDelete(ctx, s, args[0]) })
		}),
	}
}

// deletedRecord is something that was deleted.
type deletedRecord struct {
	// What is chat, branch, checkpoint, context, summary or content.
	What string `json:"what"`
	ID   string `json:"id,omitempty"`
	Name string `json:"name,omitempty"`
}

func (*deletedRecord) recordType() string { return "deleted" }

func (a *app) deleted(what, id, name string) error {
	if a.json {
		return a.emit(&deletedRecord{What: what, ID: id, Name: name})
	}
	if name == "" {
		name = id
	}
	a.printf("deleted %s %s\n", what, name)
	return nil
}

func runChatDelete(ctx context.Context, s *session, name string) error {
	t, err := s.refs.Thread(ctx, name)
	if err != nil {
		return err
	}
	info, err := t.Info(ctx)
	if err != nil {
		return err
	}
	if err := t.Delete(ctx); err != nil {
		return err
	}
	return s.deleted("chat", t.ID().String(), titleOf(info))
}
