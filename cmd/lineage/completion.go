package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/lineage/records"
)

func completionCommand(a *app.App) *cobra.Command {
	var c *cobra.Command
	c = &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print a script that completes commands in a shell",
		Long: `Prints a script that completes commands and flags in bash, zsh, fish or PowerShell. To have it
in every session:

  bash        lineage completion bash > /etc/bash_completion.d/lineage
  zsh         lineage completion zsh > "${fpath[1]}/_lineage"
  fish        lineage completion fish > ~/.config/fish/completions/lineage.fish
  PowerShell  lineage completion powershell | Out-String | Invoke-Expression`,
		Example:   `  lineage completion bash`,
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		RunE: a.Does(func(_ context.Context, args []string) error {
			return runCompletion(a, c.Root(), args[0])
		}),
	}
	return c
}

func runCompletion(a *app.App, root *cobra.Command, shell string) error {
	var script strings.Builder
	var err error
	switch shell {
	case "bash":
		err = root.GenBashCompletionV2(&script, true)
	case "zsh":
		err = root.GenZshCompletion(&script)
	case "fish":
		err = root.GenFishCompletion(&script, true)
	case "powershell":
		err = root.GenPowerShellCompletionWithDesc(&script)
	}
	if err != nil {
		return err
	}
	return a.Print(&records.Completion{Shell: shell, Script: script.String()}, "%s", script.String())
}
