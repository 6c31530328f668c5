package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
)

type threadCreateOptions struct {
	id, title, user string
	metadata        jsonFlag
	overrides       overrideFlags
}

func threadCreateCommand(a *app) *cobra.Command {
	o := &threadCreateOptions{}
	c := &cobra.Command{
		Use:   "create",
		Short: "Create a thread and make it the current one",
		Example: `  lineage thread create --title "Trip to Porto"
  lineage thread create --id porto --user ada --model gpt-5 --system "Be brief."`,
		Args: cobra.NoArgs,
		RunE: a.onThreads(noThread|begins, func(ctx context.Context, in threads, _ []string) error {
			r, err := in.createThread(ctx, o)
			if err != nil {
				return err
			}
			return a.print(r, "%s\n", r.ID)
		}),
	}
	f := c.Flags()
	f.StringVarP(&o.title, "title", "t", "", "the title")
	f.StringVar(&o.id, "id", "", "an id of your choice, unique in the store")
	f.StringVar(&o.user, "user", "", "the user it belongs to")
	f.Var(&o.metadata, "metadata", "JSON to keep with it")
	o.overrides.bind(c)
	return c
}

// createThread implements threads.
func (s *session) createThread(ctx context.Context, o *threadCreateOptions) (*records.Thread, error) {
	t, err := s.store.CreateThread(ctx, lineage.ThreadOptions{
		SourceID: o.id, UserID: o.user, Title: o.title, Metadata: o.metadata, Overrides: o.overrides.build(),
	})
	if err != nil {
		return nil, err
	}
	if err := s.useThread(t.ID()); err != nil {
		return nil, err
	}
	s.thread, s.refs = t, refs.New(s.store, t)
	return s.threadRecord(ctx, t)
}
