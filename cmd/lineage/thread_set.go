package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/lineage"
)

type threadSetOptions struct {
	thread                               string
	title, user, metadata                string
	titleGiven, userGiven, metadataGiven bool
}

func threadSetCommand(a *app) *cobra.Command {
	o := &threadSetOptions{}
	var c *cobra.Command
	c = &cobra.Command{
		Use:   "set [THREAD]",
		Short: "Change a thread's title, user or metadata",
		Long: `Change a thread's title, user or metadata. A thread without a user can be claimed for one.
A thread that has a user keeps it.`,
		Example: `  lineage thread set --title "A weekend in Lisbon"
  lineage thread set lisbon --metadata '{"tags":["travel"]}'`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) error {
			o.thread = arg(args, 0)
			o.titleGiven = c.Flags().Changed("title")
			o.userGiven = c.Flags().Changed("user")
			o.metadataGiven = c.Flags().Changed("metadata")
			if err := o.check(); err != nil {
				return err
			}
			return a.openThreads(ctx, changing, func(ctx context.Context, in threads) error {
				r, err := in.setThread(ctx, o)
				if err != nil {
					return err
				}
				return a.printThread(r)
			})
		}),
	}
	f := c.Flags()
	f.StringVarP(&o.title, "title", "t", "", "the title")
	f.StringVar(&o.user, "user", "", "the user it belongs to, if it has none yet")
	f.StringVar(&o.metadata, "metadata", "", "JSON to keep with it, in place of what was there; empty for none")
	return c
}

func (o *threadSetOptions) check() error {
	if !o.titleGiven && !o.userGiven && !o.metadataGiven {
		return usagef("nothing to change: give --title, --user or --metadata")
	}
	return nil
}

// setThread implements threads.
func (s *session) setThread(ctx context.Context, o *threadSetOptions) (*threadRecord, error) {
	metadata, err := validJSON("metadata", o.metadata)
	if err != nil {
		return nil, err
	}
	t, err := s.threadNamed(ctx, o.thread)
	if err != nil {
		return nil, err
	}
	err = t.Update(ctx, func(info *lineage.ThreadInfo) error {
		if o.titleGiven {
			info.Title = o.title
		}
		if o.userGiven {
			info.UserID = o.user
		}
		if o.metadataGiven {
			info.Metadata = metadata
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s.threadRecord(ctx, t)
}
