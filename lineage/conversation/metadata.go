package conversation

import (
	"encoding/json"
	"time"

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
}

func newMetadata(name, parentID string, index int) []byte {
	data, _ := json.Marshal(metadata{Name: name, ParentID: parentID, ParentMessageIndex: index}) // of plain fields
	return data
}

// readMetadata returns what the metadata says. Metadata that others wrote says nothing.
// Keys are taken as they are spelled, so that keys of others are not mistaken for ours.
func readMetadata(data []byte) metadata {
	var all map[string]json.RawMessage
	if json.Unmarshal(data, &all) != nil {
		return metadata{}
	}
	var m metadata
	for key, field := range map[string]any{
		"name": &m.Name, "parentId": &m.ParentID, "parentMessageIndex": &m.ParentMessageIndex,
		"updatedAt": &m.UpdatedAt, "createdAt": &m.CreatedAt, "messages": &m.Messages,
	} {
		if value, ok := all[key]; ok && json.Unmarshal(value, field) != nil {
			return metadata{}
		}
	}
	return m
}

// renamed returns metadata with a new name. What others keep there stays.
func renamed(data []byte, b *branch, name string, at time.Time) ([]byte, error) {
	all := make(map[string]json.RawMessage)
	if len(data) > 0 && (json.Unmarshal(data, &all) != nil || all == nil) {
		return nil, branchError(b.ID, lineage.ErrInvalid, "its metadata is not a JSON object")
	}
	for _, key := range []string{"name", "parentId", "parentMessageIndex", "updatedAt", "createdAt", "messages"} {
		delete(all, key) // also what is not of the type that we keep there
	}
	is := metadata{Name: name, ParentID: b.ParentID, ParentMessageIndex: b.ParentMessageIndex, UpdatedAt: &at}
	if b.file != nil {
		is.CreatedAt = &b.CreatedAt
	}
	ours, err := json.Marshal(is)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(ours, &all); err != nil {
		return nil, err
	}
	return json.Marshal(all)
}
