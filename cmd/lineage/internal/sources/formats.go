package sources

import (
	"strings"

	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/formats"
	"github.com/lineage-store/lineage/sqladapter/archives"
)

// Formats are the formats that can be imported.
func Formats() []archive.Format { return append(formats.All(), archives.Formats()...) }

// formatList returns the names of all formats, indented and wrapped.
func formatList() string {
	var names []string
	for _, f := range Formats() {
		names = append(names, f.Name)
	}
	return "  " + strings.Join(screen.Wrap(strings.Join(names, ", "), 76), "\n  ")
}
