package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/lineage"
)

type forkOptions struct {
	at        string
	branch    string
	thread    string
	count     int
	metadata  jsonFlag
	overrides overrideFlags
}

func forkCommand(a *app) *cobra.Command {
	o := &forkOptions{}
	c := &cobra.Command{
		Use:   "fork [NAME]",
		Short: "Create a context that continues from a position",
		Long: `Creates a context at the tip of another, or at any message, that shares its
history: it costs one small record, however long that is. Prints the new context's id.
A fork is without a name unless --branch gives it one.`,
		Example: `  lineage fork
  lineage fork :2 --branch museums
  lineage fork cheap --count 3 --model small-1 --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) error {
			o.at = arg(args, 0)
			if err := newName(o.branch); err != nil {
				return err
			}
			return a.open(ctx, changing, func(ctx context.Context, s *session) error { return runFork(ctx, s, o) })
		}),
	}
	f := c.Flags()
	f.StringVarP(&o.branch, "branch", "b", "", "name it, as a branch")
	f.StringVar(&o.thread, "into", "", "the thread that it belongs to, if another")
	f.IntVar(&o.count, "count", 1, "how many to make")
	f.Var(&o.metadata, "metadata", "JSON to keep with it")
	o.overrides.bind(c)
	return c
}

func runFork(ctx context.Context, s *session, o *forkOptions) error {
	if o.count < 1 || o.count > 1 && o.branch != "" {
		return usagef("--count: at least 1, and with --branch no more")
	}
	found, err := s.refs.Find(ctx, o.at)
	if err != nil {
		return err
	}
	home, err := s.home(found)
	if err != nil {
		return err
	}
	from, err := s.contextOf(ctx, found)
	if err != nil {
		return err
	}
	if o.thread != "" {
		if home, err = s.refs.Thread(ctx, o.thread); err != nil {
			return err
		}
	}
	for range o.count {
		var fork *lineage.Context
		if o.branch != "" {
			fork, err = home.CreateBranch(ctx, o.branch, lineage.BranchOptions{
				From: from.Context, At: found.Span, Empty: found.Span.IsZero(), Overrides: o.overrides.build(), Metadata: o.metadata,
			})
		} else {
			fork, err = from.Context.Fork(ctx, lineage.ForkOptions{
				At: found.Span, Empty: found.Span.IsZero(), Thread: home.ID(), Overrides: o.overrides.build(), Metadata: o.metadata,
			})
		}
		if err != nil {
			return err
		}
		if err := s.created(ctx, fork); err != nil {
			return err
		}
	}
	s.note("%s of %s", screen.Plural(o.count, "fork"), nameOf(found))
	return nil
}

// bind makes the flags of what a context sets differently.
func (o *overrideFlags) bind(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.model, "model", "", "the model that is asked")
	f.StringVar(&o.system, "system", "", "the system prompt")
	f.Var(&o.overrides, "overrides", "further overrides, as JSON")
}
