package conversation

import (
	"encoding/json"
	"time"

	"github.com/lineage-store/lineage/lineage"
)

// metadata is what a branch's context keeps for this package. It is on disk: keys
// must not change.
type metadata struct {
	Name               string     `json:"name,omitempty"`
	ParentID           string     `json:"parentId,omitempty"`
	ParentMessageIndex int        `json:"parentMessageIndex,omitempty"`
	UpdatedAt          *time.Time `json:"updatedAt,omitempty"` // when it was renamed
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
		"name": &m.Name, "parentId": &m.ParentID, "parentMessageIndex": &m.ParentMessageIndex, "updatedAt": &m.UpdatedAt,
	} {
		if value, ok := all[key]; ok && json.Unmarshal(value, field) != nil {
			return metadata{}
		}
	}
	return m
}

// renamed returns metadata with a new name. What others keep there stays.
func renamed(data []byte, b *Branch, name string, at time.Time) ([]byte, error) {
	all, err := members(data, b.ID)
	if err != nil {
		return nil, err
	}
	for _, key := range []string{"name", "parentId", "parentMessageIndex", "updatedAt"} {
		delete(all, key) // also what is not of the type that we keep there
	}
	ours, err := json.Marshal(metadata{Name: name, ParentID: b.ParentID, ParentMessageIndex: b.ParentMessageIndex, UpdatedAt: &at})
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(ours, &all); err != nil {
		return nil, err
	}
	return json.Marshal(all)
}

// members returns the members of a branch's metadata.
func members(data []byte, id string) (map[string]json.RawMessage, error) {
	all := make(map[string]json.RawMessage)
	if len(data) > 0 && (json.Unmarshal(data, &all) != nil || all == nil) {
		return nil, branchError(id, lineage.ErrInvalid, "its metadata is not a JSON object")
	}
	return all, nil
}
