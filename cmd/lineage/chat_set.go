package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/lineage"
)

type chatSetOptions struct {
	chat                                 string
	title, user, metadata                string
	titleGiven, userGiven, metadataGiven bool
}

func chatSetCommand(a *app) *cobra.Command {
	o := &chatSetOptions{}
	var c *cobra.Command
	c = &cobra.Command{
		Use:   "set [CHAT]",
		Short: "Change a chat's title, user or metadata",
		Long: `Change a chat's title, user or metadata. A chat without a user can be claimed for one.
A chat that has a user keeps it.`,
		Example: `  lineage chat set --title "A weekend in Lisbon"
  lineage chat set lisbon --metadata '{"tags":["travel"]}'`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) error {
			o.chat = arg(args, 0)
			o.titleGiven = c.Flags().Changed("title")
			o.userGiven = c.Flags().Changed("user")
			o.metadataGiven = c.Flags().Changed("metadata")
			if a.dsn() != "" {
				return a.onDB(ctx, func(ctx context.Context, d *database) error { return d.setChat(ctx, o) })
			}
			return a.change(ctx, func(ctx context.Context, s *session) error { return runChatSet(ctx, s, o) })
		}),
	}
	f := c.Flags()
	f.StringVarP(&o.title, "title", "t", "", "what it is about")
	f.StringVar(&o.user, "user", "", "whose it is, if it has no user yet")
	f.StringVar(&o.metadata, "metadata", "", "JSON to keep with it, in place of what was there; empty for none")
	return c
}

func (o *chatSetOptions) check() error {
	if !o.titleGiven && !o.userGiven && !o.metadataGiven {
		return usagef("nothing to change: give --title, --user or --metadata")
	}
	return nil
}

func runChatSet(ctx context.Context, s *session, o *chatSetOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	metadata, err := validJSON("metadata", o.metadata)
	if err != nil {
		return err
	}
	t, err := s.chatNamed(ctx, o.chat)
	if err != nil {
		return err
	}
	err = t.Update(ctx, func(info *lineage.ThreadInfo) {
		if o.titleGiven {
			info.Title = o.title
		}
		if o.userGiven {
			info.UserID = o.user
		}
		if o.metadataGiven {
			info.Metadata = metadata
		}
	})
	if err != nil {
		return err
	}
	return runChatShow(ctx, s, t.ID().String())
}
