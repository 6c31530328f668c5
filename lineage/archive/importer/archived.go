package importer

import (
	"bytes"
	"encoding/json"
	"hash/crc32"
	"strconv"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/structure"
)

// archiveState is the state of a conversation in its archive. It is stored in the metadata of the thread. With it, an
// import distinguishes newer exports from older ones, and changes in the archive from changes in the store.
type archiveState struct {
	Format string `json:"format"`
	// Title and Model are those of the archive. Metadata is a checksum.
	Title    string `json:"title,omitempty"`
	Model    string `json:"model,omitempty"`
	Metadata string `json:"metadata,omitempty"`
	// Updated is in Unix milliseconds. Current is the mark of the current message.
	Updated    int64  `json:"updated,omitempty"`
	Current    string `json:"current,omitempty"`
	ForkedFrom string `json:"forkedFrom,omitempty"`
	// Seen are checksums of earlier states, so that importing an old archive again does not revert a newer one.
	Seen []string `json:"seen,omitempty"`
}

// maxSeen limits the number of earlier states.
const maxSeen = 8

// sum returns a checksum of the state.
func (s archiveState) sum() string {
	s.Seen = nil
	b, _ := json.Marshal(s)
	return checksum(b)
}

// archiveKey is the key of the archiveState in a thread's metadata.
const archiveKey = "_archive"

// archivedIn returns the state that the last import stored in a thread's metadata.
func archivedIn(t *structure.Thread) archiveState {
	var s archiveState
	if json.Valid(t.Metadata) {
		_ = json.Unmarshal(rawjson.Get(t.Metadata, archiveKey), &s) // other programs may have set an invalid value
	}
	return s
}

// addMembers adds members to the metadata of a thread. They replace members with the same keys.
func addMembers(metadata, more []byte) []byte {
	if len(metadata) > 0 && (!rawjson.Valid(metadata) || !rawjson.IsObject(metadata)) {
		return metadata // other programs have set something that is not an object
	}
	for m := range rawjson.Members(more) {
		if !bytes.Equal(rawjson.Get(metadata, m.Key), m.Value) {
			return rawjson.MergePatch(metadata, more)
		}
	}
	return metadata
}

func checksum(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	return strconv.FormatUint(uint64(crc32.ChecksumIEEE(b)), 16)
}
