package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
)

type threadSetOptions struct {
	thread, title, user string
	metadata            jsonFlag
	given               func(flag string) bool
}

func threadSetCommand(a *app) *cobra.Command {
	o := &threadSetOptions{}
	c := &cobra.Command{
		Use:   "set [THREAD]",
		Short: "Change a thread's title, user or metadata",
		Long: `Change a thread's title, user or metadata. A thread without a user can be claimed for one.
A thread that has a user keeps it.`,
		Example: `  lineage thread set --title "A weekend in Lisbon"
  lineage thread set lisbon --metadata '{"tags":["travel"]}'`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.onThreads(changing, func(ctx context.Context, in threads, args []string) error {
			o.thread = arg(args, 0)
			r, err := in.setThread(ctx, o)
			return a.printThread(r, err)
		}),
	}
	f := c.Flags()
	o.given = f.Changed
	f.StringVarP(&o.title, "title", "t", "", "the title")
	f.StringVar(&o.user, "user", "", "the user it belongs to, if it has none yet")
	f.Var(&o.metadata, "metadata", "JSON to keep with it, in place of what was there; empty for none")
	c.MarkFlagsOneRequired("title", "user", "metadata")
	return c
}

// setThread implements threads.
func (s inStore) setThread(ctx context.Context, o *threadSetOptions) (*records.Thread, error) {
	t, err := s.threadNamed(ctx, o.thread)
	if err != nil {
		return nil, err
	}
	err = t.Update(ctx, func(info *lineage.ThreadInfo) error {
		if o.given("title") {
			info.Title = o.title
		}
		if o.given("user") {
			info.UserID = o.user
		}
		if o.given("metadata") {
			info.Metadata = o.metadata
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s.threadRecord(ctx, t)
}
