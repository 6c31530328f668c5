package conversation

import (
	"encoding/json"
	"slices"
	"time"
)

// metadata is this package's part of the metadata of a branch's context. The keys are on disk and must not
// change. Package archive writes the same keys when it imports branch files.
type metadata struct {
	Name               string     `json:"name,omitempty"`
	ParentID           string     `json:"parentId,omitempty"`
	ParentMessageIndex int        `json:"parentMessageIndex,omitempty"`
	UpdatedAt          *time.Time `json:"updatedAt,omitempty"` // when it was renamed
	// CreatedAt and Messages are from the file of an imported branch, as of UpdatedAt.
	CreatedAt *time.Time `json:"createdAt,omitempty"`
	Messages  int        `json:"messages,omitempty"`
	// RenamedFrom is the name in the file of an imported branch that was renamed since. An import renames the
	// branch only if its name in the file changed.
	RenamedFrom string `json:"renamedFrom,omitempty"`
}

func newMetadata(name, parentID string, index int) []byte {
	data, _ := json.Marshal(metadata{Name: name, ParentID: parentID, ParentMessageIndex: index}) // of plain fields
	return data
}

// isOurs reports whether a key is one of metadata. Unlike encoding/json it respects case, so that keys of
// others stay.
func isOurs(key string) bool {
	return slices.Contains([]string{"name", "parentId", "parentMessageIndex", "updatedAt", "createdAt", "messages", "renamedFrom"}, key)
}
