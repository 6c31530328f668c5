package main

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/lineage/records"
)

func versionCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Show the version of the program",
		Long:    `Shows the version of the module, the commit it was built from, and the version of Go. 'lineage --version' is the same.`,
		Example: `  lineage version`,
		Args:    cobra.NoArgs,
		RunE:    a.Does(func(context.Context, []string) error { return runVersion(a) }),
	}
}

// versionText returns the version for people.
func versionText(r *records.Version) string {
	commit := r.Revision
	switch {
	case commit == "":
		commit = "unknown: the build has no version control information"
	case r.Modified:
		commit += ", with changes that are not committed"
	}
	return fmt.Sprintf("lineage %s\ncommit  %s\ngo      %s %s\n", r.Version, commit, strings.TrimPrefix(r.Go, "go"), r.Platform)
}

func runVersion(a *app.App) error {
	build, _ := debug.ReadBuildInfo()
	r := app.NewVersion(build)
	return a.Print(r, "%s", versionText(r))
}
