package app

import (
	"runtime"
	"runtime/debug"

	"github.com/lineage-store/lineage/lineage/records"
)

// NewVersion returns the record of a build's version. build may be nil if there is no information.
func NewVersion(build *debug.BuildInfo) *records.Version {
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
