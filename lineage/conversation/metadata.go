package conversation

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage"
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

// readMetadata decodes metadata. It returns the zero value for metadata of another form.
func readMetadata(data []byte) (m metadata) {
	if !rawjson.Valid(data) {
		return metadata{}
	}
	ours := rawjson.RemoveFunc(data, func(key string) bool { return !isOurs(key) })
	if json.Unmarshal(ours, &m) != nil {
		return metadata{}
	}
	return m
}

// renamed returns metadata with a new name. Keys of others stay.
func renamed(data []byte, b *branch, name string, at time.Time) ([]byte, error) {
	if data = bytes.TrimSpace(data); len(data) > 0 && !(rawjson.IsObject(data) && rawjson.Valid(data)) {
		return nil, branchError(b.ID, lineage.ErrInvalid, "its metadata is not a JSON object")
	}
	was := readMetadata(data)
	now := metadata{
		Name: name, ParentID: b.ParentID, ParentMessageIndex: b.ParentMessageIndex, UpdatedAt: &at, CreatedAt: was.CreatedAt,
	}
	if b.imported {
		now.RenamedFrom = cmp.Or(was.RenamedFrom, was.Name)
	}
	ours, err := json.Marshal(now)
	return rawjson.MergePatch(rawjson.RemoveFunc(data, isOurs), ours), err
}
