package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
)

func helpCommand(a *app.App) *cobra.Command {
	var c *cobra.Command
	c = &cobra.Command{
		Use:     "help [COMMAND]",
		Short:   "Show the help of a command",
		Example: `  lineage help fork`,
		RunE: a.Does(func(_ context.Context, args []string) error {
			about, rest, err := c.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return app.KnownCommand(c.Root(), append(rest, args...)[:1])
			}
			return about.Help()
		}),
	}
	return c
}
