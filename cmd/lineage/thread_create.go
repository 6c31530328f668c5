package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/lineage"
)

type threadCreateOptions struct {
	id, title, user, metadata string
	overrides                 overrideFlags
}

func threadCreateCommand(a *app) *cobra.Command {
	o := &threadCreateOptions{}
	c := &cobra.Command{
		Use:   "create",
		Short: "Create a thread and make it the current one",
		Example: `  lineage thread create --title "Trip to Porto"
  lineage thread create --id porto --user ada --model gpt-5 --system "Be brief."`,
		Args: cobra.NoArgs,
		RunE: a.does(func(ctx context.Context, _ []string) error {
			if a.dsn() != "" {
				return a.onNewDB(ctx, func(ctx context.Context, d *database) error { return d.createThread(ctx, o) })
			}
			return a.open(ctx, noThread, func(ctx context.Context, s *session) error { return runThreadCreate(ctx, s, o) })
		}),
	}
	f := c.Flags()
	f.StringVarP(&o.title, "title", "t", "", "the title")
	f.StringVar(&o.id, "id", "", "an id of your choice, unique in the store")
	f.StringVar(&o.user, "user", "", "the user it belongs to")
	f.StringVar(&o.metadata, "metadata", "", "JSON to keep with it")
	f.StringVar(&o.overrides.model, "model", "", "the model that is asked")
	f.StringVar(&o.overrides.system, "system", "", "the system prompt")
	f.StringVar(&o.overrides.overrides, "overrides", "", "further overrides, as JSON")
	return c
}

func runThreadCreate(ctx context.Context, s *session, o *threadCreateOptions) error {
	metadata, err := validJSON("metadata", o.metadata)
	if err != nil {
		return err
	}
	overrides, err := o.overrides.build()
	if err != nil {
		return err
	}
	t, err := s.store.CreateThread(ctx, lineage.ThreadOptions{
		SourceID: o.id, UserID: o.user, Title: o.title, Metadata: metadata, Overrides: overrides,
	})
	if err != nil {
		return err
	}
	if err := s.useThread(t.ID()); err != nil {
		return err
	}
	s.thread = t
	if s.json {
		r, err := s.threadRecord(ctx, t)
		if err != nil {
			return err
		}
		return s.emit(r)
	}
	s.printf("%s\n", t.ID())
	return nil
}
