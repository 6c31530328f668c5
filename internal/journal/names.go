package journal

import "github.com/lineage-store/lineage/internal/pack/layout"

// IsFileName reports whether name is the name of a journal file.
func IsFileName(name string) bool {
	if _, ok := segmentNumber(name); ok {
		return true
	}
	_, _, _, ok := layout.ParseName(name)
	return ok
}
