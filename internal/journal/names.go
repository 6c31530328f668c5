package journal

import "github.com/lineage-store/lineage/internal/pack"

// IsFileName reports whether a file of that name in a journal's directory is part
// of the journal.
func IsFileName(name string) bool {
	if _, ok := segmentNumber(name); ok {
		return true
	}
	_, _, _, ok := pack.ParseName(name)
	return ok
}
