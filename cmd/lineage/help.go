package main

import (
	"context"

	"github.com/spf13/cobra"
)

func helpCommand(a *app) *cobra.Command {
	var c *cobra.Command
	c = &cobra.Command{
		Use:     "help [COMMAND]",
		Short:   "Show the help of a command",
		Example: `  lineage help fork`,
		RunE: a.does(func(_ context.Context, args []string) error {
			about, rest, err := c.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return knownCommand(c.Root(), append(rest, args...)[:1])
			}
			return about.Help()
		}),
	}
	return c
}
