package conversation

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
)

// branchFile is what a file says of a branch.
type branchFile struct {
	file               string
	id, name           string
	parentID           string
	parentMessageIndex *int
	messages           []Message
	createdAt          time.Time
	fields             map[string]json.RawMessage // all that the file has beside messages
}

// compare orders branches by creation.
func (b *branchFile) compare(other *branchFile) int {
	return cmp.Or(b.createdAt.Compare(other.createdAt), strings.Compare(b.id, other.id))
}

// imported is what a branch's context keeps of the file that it came from. It is on
// disk: keys must not change.
type imported struct {
	// At is where the import left the branch.
	At string `json:"at"`
	// File is what the file had beside messages.
	File struct {
		CreatedAt time.Time `json:"createdAt"`
		UpdatedAt time.Time `json:"updatedAt"`
	} `json:"file"`
}

// readImported returns what the metadata of a context says of its file, zero for
// one that came from none.
func readImported(data []byte) imported {
	var all struct {
		Imported imported `json:"imported"`
	}
	if json.Unmarshal(data, &all) != nil {
		return imported{}
	}
	return all.Imported
}

// withImported returns a context's metadata with what the file says, and name if it
// has none.
func (b *branchFile) withImported(data []byte, at lineage.SpanRef) ([]byte, error) {
	all, err := members(data, b.id)
	if err != nil {
		return nil, err
	}
	if _, named := all["name"]; !named {
		if all["name"], err = json.Marshal(b.name); err != nil {
			return nil, err
		}
	}
	all["imported"], err = json.Marshal(map[string]any{"at": at.String(), "file": b.fields})
	if err != nil {
		return nil, err
	}
	return json.Marshal(all)
}

// readBranchFile reads a file of a session's folder. A link that leads out of the
// root is not followed, and nothing but a regular file is read.
func readBranchFile(dir *os.Root, session, name string, o ImportOptions) (*branchFile, error) {
	limit := cmp.Or(o.MaxFile, DefaultMaxFile)
	at := path.Join(session, name)
	// Opening something like a pipe could wait for ever.
	info, err := dir.Stat(at)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("it is no regular file: %w", ErrBadFile)
	}
	f, err := dir.Open(at)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("it is larger than %d bytes: %w", limit, lineage.ErrInvalid)
	}
	b, err := decodeBranchFile(data)
	if err != nil {
		return nil, err
	}
	b.file = name
	return b, nil
}

// decodeBranchFile reads a branch. Keys are taken as they are spelled.
func decodeBranchFile(data []byte) (*branchFile, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil || all == nil {
		return nil, fmt.Errorf("%w: it is not a JSON object, or only the beginning of one", ErrBadFile)
	}
	b := &branchFile{fields: all}
	var messages []json.RawMessage
	for key, field := range map[string]any{
		"id": &b.id, "name": &b.name, "parentId": &b.parentID, "parentMessageIndex": &b.parentMessageIndex, "messages": &messages,
	} {
		if value, ok := all[key]; ok && json.Unmarshal(value, field) != nil {
			return nil, fmt.Errorf("%w: its %s is of another kind", ErrBadFile, key)
		}
	}
	for key, at := range map[string]*time.Time{"createdAt": &b.createdAt, "updatedAt": new(time.Time)} {
		if value, ok := all[key]; ok && json.Unmarshal(value, at) != nil {
			return nil, fmt.Errorf("%w: its %s is no time", ErrBadFile, key)
		}
	}
	delete(all, "messages")
	switch {
	case b.id == "":
		return nil, fmt.Errorf("%w: it has no id", ErrBadFile)
	case !isFileName(b.id):
		return nil, fmt.Errorf("%w: its id %.100q would not stay in its folder", ErrBadFile, b.id)
	case messages == nil:
		return nil, fmt.Errorf("%w: it has no messages", ErrBadFile)
	case b.parentMessageIndex != nil && *b.parentMessageIndex < 0:
		return nil, fmt.Errorf("%w: it begins at message %d of its parent", ErrBadFile, *b.parentMessageIndex)
	}
	if err := checkText("branch", "id", b.id); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadFile, err)
	}
	if strings.TrimSpace(b.name) == "" {
		b.name = b.id
	}
	b.messages = make([]Message, len(messages))
	for i, raw := range messages {
		m, err := decodeFileMessage(raw)
		if err != nil {
			return nil, fmt.Errorf("%w: message %d: %w", ErrBadFile, i, err)
		}
		b.messages[i] = m
	}
	return b, nil
}

// decodeFileMessage reads a message that can be stored.
func decodeFileMessage(raw []byte) (Message, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil || fields == nil {
		return Message{}, fmt.Errorf("it is not a JSON object: %w", lineage.ErrInvalid)
	}
	var role string
	if err := json.Unmarshal(fields["role"], &role); err != nil {
		return Message{}, fmt.Errorf("it has no role: %w", lineage.ErrInvalid)
	}
	m := decode(role, content.TypeJSON, raw)
	_, err := m.item()
	return m, err
}
