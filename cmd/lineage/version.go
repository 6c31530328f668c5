package main

import (
	"context"
	"fmt"
	"runtime"
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

// newVersionRecord returns the version of a build, which may be nil if the build has no information.
func newVersionRecord(build *debug.BuildInfo) *records.Version {
	r := &records.Version{Version: "unreleased", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if build == nil {
		return r
	}
	if v := build.Main.Version; v != "" && v != "(devel)" {
		r.Version = v
	}
	for _, setting := range build.Settings {
		switch setting.Key {
		case "vcs.revision":
			r.Revision = setting.Value
		case "vcs.modified":
			r.Modified = setting.Value == "true"
		}
	}
	return r
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
	r := newVersionRecord(build)
	return a.Print(r, "%s", versionText(r))
}
