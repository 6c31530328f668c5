package main

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
)

func TestVersion(t *testing.T) {
	settings := func(pairs ...string) []debug.BuildSetting {
		var list []debug.BuildSetting
		for i := 0; i < len(pairs); i += 2 {
			list = append(list, debug.BuildSetting{Key: pairs[i], Value: pairs[i+1]})
		}
		return list
	}
	const unknown = "commit  unknown: the build has no version control information\n"
	tests := []struct {
		name  string
		build *debug.BuildInfo
		want  string
	}{
		{"no build information", nil, "lineage unreleased\n" + unknown},
		{"not stamped", &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, "lineage unreleased\n" + unknown},
		{"a version from the proxy", &debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}}, "lineage v1.2.3\n" + unknown},
		{"a clean checkout", &debug.BuildInfo{Settings: settings("vcs.revision", "0123abcd", "vcs.modified", "false")},
			"lineage unreleased\ncommit  0123abcd\n"},
		{"a changed checkout", &debug.BuildInfo{Settings: settings("vcs.modified", "true", "vcs.revision", "0123abcd")},
			"lineage unreleased\ncommit  0123abcd, with changes that are not committed\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := versionText(app.NewVersion(tt.build))
			require.Contains(t, text, tt.want)
			require.Regexp(t, `\ngo      1\.\d+\S* \w+/\w+\n$`, text)
		})
	}
}
