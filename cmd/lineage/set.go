package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/lineage"
)

type setOptions struct {
	context   string
	overrides overrideFlags
	metadata  string
	given     func(flag string) bool
}

func setCommand(a *app) *cobra.Command {
	o := &setOptions{}
	c := &cobra.Command{
		Use:   "set [CONTEXT]",
		Short: "Set a context's model, system prompt or metadata",
		Long: `Sets what a context overrides: its model, its system prompt, any other settings as JSON, and its
metadata. What forks and subagents do not set themselves they inherit. An empty value takes a
setting back.`,
		Example: `  lineage set --model large-2 --system "Answer in one sentence."
  lineage set cheap --model "" --json`,
		Args: cobra.MaximumNArgs(1),
	}
	c.RunE = a.does(func(ctx context.Context, args []string) error {
		o.context, o.given = arg(args, 0), c.Flags().Changed
		return a.change(ctx, func(ctx context.Context, s *session) error { return runSet(ctx, s, o) })
	})
	o.overrides.bind(c)
	c.Flags().StringVar(&o.metadata, "metadata", "", "JSON to keep with it")
	return c
}

func runSet(ctx context.Context, s *session, o *setOptions) error {
	model, system, overrides, metadata := o.given("model"), o.given("system"), o.given("overrides"), o.given("metadata")
	if !model && !system && !overrides && !metadata {
		return usagef("nothing to set: give --model, --system, --overrides or --metadata")
	}
	found, err := s.context(ctx, o.context)
	if err != nil {
		return err
	}
	info, err := found.Context.Info(ctx)
	if err != nil {
		return err
	}
	wanted, err := o.overrides.build()
	if err != nil {
		return err
	}
	is := info.Overrides
	if model {
		is.Model = wanted.Model
	}
	if system {
		is.SystemPrompt = wanted.SystemPrompt
	}
	if overrides {
		is.JSON = wanted.JSON
	}
	kept, err := validJSON("metadata", o.metadata)
	if err != nil {
		return err
	}
	if model || system || overrides {
		if err := found.Context.SetOverrides(ctx, lineage.Overrides{SystemPrompt: is.SystemPrompt, Model: is.Model, JSON: is.JSON}); err != nil {
			return err
		}
	}
	if metadata {
		if err := found.Context.SetMetadata(ctx, kept); err != nil {
			return err
		}
	}
	return s.showContext(ctx, found)
}
