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

// metadata is what a branch's context keeps for this package. It is on disk: keys
// must not change. Package archive writes what the file of a branch says under the same keys.
type metadata struct {
	Name               string     `json:"name,omitempty"`
	ParentID           string     `json:"parentId,omitempty"`
	ParentMessageIndex int        `json:"parentMessageIndex,omitempty"`
	UpdatedAt          *time.Time `json:"updatedAt,omitempty"` // when it was renamed
	// CreatedAt is when an imported branch was created, and Messages how many messages it then had in its file,
	// which was last changed at UpdatedAt.
	CreatedAt *time.Time `json:"createdAt,omitempty"`
	Messages  int        `json:"messages,omitempty"`
	// RenamedFrom is the name in its file of an imported branch that was renamed here. An import gives the branch
	// another name only.
	RenamedFrom string `json:"renamedFrom,omitempty"`
}

func newMetadata(name, parentID string, index int) []byte {
	data, _ := json.Marshal(metadata{Name: name, ParentID: parentID, ParentMessageIndex: index}) // of plain fields
	return data
}

// isOurs reports whether a key is one of metadata. Keys are taken as they are spelled, so that keys of
// others are not mistaken for ours.
func isOurs(key string) bool {
	return slices.Contains([]string{"name", "parentId", "parentMessageIndex", "updatedAt", "createdAt", "messages", "renamedFrom"}, key)
}

// readMetadata returns what the metadata says. Metadata that others wrote says nothing.
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

// renamed returns metadata with a new name. What others keep there stays.
func renamed(data []byte, b *branch, name string, at time.Time) ([]byte, error) {
	if data = bytes.TrimSpace(data); len(data) > 0 && !(rawjson.IsObject(data) && rawjson.Valid(data)) {
		return nil, branchError(b.ID, lineage.ErrInvalid, "its metadata is not a JSON object")
	}
	was := readMetadata(data)
	is := metadata{
		Name: name, ParentID: b.ParentID, ParentMessageIndex: b.ParentMessageIndex, UpdatedAt: &at, CreatedAt: was.CreatedAt,
	}
	if b.imported {
		is.RenamedFrom = cmp.Or(was.RenamedFrom, was.Name)
	}
	ours, err := json.Marshal(is)
	return rawjson.MergePatch(rawjson.RemoveFunc(data, isOurs), ours), err
}
