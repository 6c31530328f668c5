package main

import (
	"context"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func versionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Tell which version this is",
		Example: `  lineage version`,
		Args:    cobra.NoArgs,
		RunE:    a.does(func(context.Context, []string) error { return runVersion(a) }),
	}
}

// versionRecord is which version this is.
type versionRecord struct {
	Version string `json:"version"`
	// Revision is the commit it was built from, where that is known.
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (*versionRecord) recordType() string { return "version" }

func runVersion(a *app) error {
	r := versionRecord{Version: "unreleased", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		if v := info.Main.Version; v != "" && v != "(devel)" {
			r.Version = v
		}
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				r.Revision = setting.Value
			}
		}
	}
	if a.json {
		return a.emit(&r)
	}
	a.printf("lineage %s %s %s\n", r.Version, r.Go, r.Platform)
	return nil
}
