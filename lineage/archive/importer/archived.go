package importer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"strconv"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/structure"
)

// archiveState is stored in a thread's metadata. With it, an import distinguishes newer exports
// from older ones, and changes of the archive from changes of others.
type archiveState struct {
	Format string `json:"format"`
	// Title and Model are those of the archive, Metadata is a checksum.
	Title    string `json:"title,omitempty"`
	Model    string `json:"model,omitempty"`
	Metadata string `json:"metadata,omitempty"`
	// Updated is in Unix milliseconds; Current marks the current message.
	Updated    int64  `json:"updated,omitempty"`
	Current    string `json:"current,omitempty"`
	ForkedFrom string `json:"forkedFrom,omitempty"`
	// Seen are checksums of earlier states: importing an old archive again does not revert a newer
	// one.
	Seen []string `json:"seen,omitempty"`
}

// maxSeen limits the remembered states.
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
		_ = json.Unmarshal(rawjson.Get(t.Metadata, archiveKey), &s) // others may have set it
	}
	return s
}

// archiveState returns the archive's state of the conversation, except for what is part of a
// derived source id.
func (st *loading) archiveState(heads []head) archiveState {
	s := archiveState{
		Format: st.format, Title: st.header.Title, Model: st.header.Model, ForkedFrom: st.header.ForkedFrom,
	}
	if !st.derived {
		s.Metadata = checksum(st.header.Metadata)
	}
	if !st.header.Updated.IsZero() && st.last[0] >= 0 {
		s.Updated = st.header.Updated.UnixMilli()
	}
	if len(heads) > 0 && heads[0].current && (!st.derived && !st.again || st.header.Current != "") {
		s.Current = fmt.Sprintf("%08x", st.nodes[heads[0].node].mark)
	}
	return s
}

// metadata returns the thread's metadata with a state in it; if replace is set, based on the
// archive's metadata.
func (st *loading) metadata(s archiveState, replace bool) []byte {
	from := st.thread.record.Metadata
	if replace || !json.Valid(from) || !rawjson.IsObject(from) {
		from = st.header.Metadata
	}
	var o rawjson.Object
	for m := range rawjson.Members(from) {
		if m.Key != archiveKey {
			o.Add(m)
		}
	}
	state, _ := json.Marshal(s)
	o.Set(archiveKey, state)
	return o.Bytes()
}

// addMembers adds members to the metadata of a thread, in place of those with the same keys.
func addMembers(metadata, more []byte) []byte {
	if len(metadata) > 0 && (!rawjson.Valid(metadata) || !rawjson.IsObject(metadata)) {
		return metadata // others have set it
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
