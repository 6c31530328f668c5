package history

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/show"
	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
)

type setOptions struct {
	overrides app.OverrideFlags
	metadata  app.JSONFlag
	given     func(flag string) bool
}

func SetCommand(a *app.App) *cobra.Command {
	o := &setOptions{}
	c := &cobra.Command{
		Use:   "set [CONTEXT]",
		Short: "Set a context's model, system prompt or metadata",
		Long: `Sets what a context overrides: its model, its system prompt, any other settings as JSON, and its
metadata. Forks and subagents inherit the settings that they do not set themselves. An empty value
removes a setting.`,
		Example: `  lineage set --model large-2 --system "Answer in one sentence."
  lineage set cheap --model "" --json`,
		Args: cobra.MaximumNArgs(1),
	}
	c.RunE = a.OnContext(app.Changing, func(ctx context.Context, s *app.OpenStore, found *refs.Ref) error { return runSet(ctx, s, found, o) })
	o.given = c.Flags().Changed
	o.overrides.Bind(c)
	c.Flags().Var(&o.metadata, "metadata", "JSON to keep with it")
	c.MarkFlagsOneRequired("model", "system", "overrides", "metadata")
	return c
}

func runSet(ctx context.Context, s *app.OpenStore, found *refs.Ref, o *setOptions) error {
	wanted := o.overrides.Build()
	err := found.Context.Update(ctx, func(info *lineage.ContextInfo) error {
		if o.given("model") {
			info.Overrides.Model = wanted.Model
		}
		if o.given("system") {
			info.Overrides.SystemPrompt = wanted.SystemPrompt
		}
		if o.given("overrides") {
			info.Overrides.JSON = wanted.JSON
		}
		if o.given("metadata") {
			info.Metadata = o.metadata
		}
		return nil
	})
	if err != nil {
		return err
	}
	return show.PrintContext(ctx, s, found)
}
