package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// The roles of messages.
const (
	RoleSystem    = "system"
	RoleUser      = "user"
	RoleAssistant = "assistant"
)

// UIMessage is a structured message. A decoded one keeps its bytes: encoding it returns the same
// bytes, except for edited fields. Unknown fields and parts are kept as well.
type UIMessage struct {
	ID       string
	Role     string
	Parts    []Part
	Metadata json.RawMessage // empty when absent; replace, do not change in place

	raw []byte // the JSON this was decoded from, or nil
}

// DecodeMessage reads a message from its stored form. The message does not
// share data with the caller.
func DecodeMessage(data []byte) (UIMessage, error) {
	if !rawjson.Valid(data) {
		return UIMessage{}, fmt.Errorf("%w: not JSON", ErrBadMessage)
	}
	return decodeMessage(bytes.Clone(data))
}

// decodeMessage reads a message from JSON, which it retains.
func decodeMessage(raw []byte) (UIMessage, error) {
	m := UIMessage{raw: raw}
	if !rawjson.IsObject(raw[rawjson.SkipSpace(raw, 0):]) {
		return UIMessage{}, fmt.Errorf("%w: not an object", ErrBadMessage)
	}
	members := make(map[string][]byte)
	for member := range rawjson.Members(raw) {
		members[member.Key] = member.Value
	}
	m.Metadata = members["metadata"]
	for _, f := range m.names() {
		value := members[f.name]
		if rawjson.IsNull(value) {
			continue
		}
		var ok bool
		if *f.text, ok = rawjson.Text(value); !ok {
			return UIMessage{}, fmt.Errorf("%w: %s is not a string", ErrBadMessage, f.name)
		}
	}
	parts := members["parts"]
	if rawjson.IsNull(parts) {
		return m, nil
	}
	if !rawjson.IsArray(parts) {
		return UIMessage{}, fmt.Errorf("%w: parts is not a list", ErrBadMessage)
	}
	m.Parts = []Part{}
	for e := range rawjson.Elements(parts) {
		m.Parts = append(m.Parts, decodePart(e))
	}
	return m, nil
}

// names lists the plain text fields in the order in which they are written.
func (m *UIMessage) names() []partField {
	return []partField{{name: "id", text: &m.ID}, {name: "role", text: &m.Role}}
}

// Encode returns the message in its stored form.
func (m UIMessage) Encode() (json.RawMessage, error) {
	if len(m.Metadata) > 0 && !rawjson.Valid(m.Metadata) {
		return nil, fmt.Errorf("%w: metadata is not JSON", ErrBadMessage)
	}
	if m.raw == nil {
		m.raw = []byte(`{"id":"","role":"","parts":[]}`)
	}
	before, err := decodeMessage(m.raw)
	if err != nil {
		return nil, err
	}
	out := m.raw
	was := before.names()
	for i, f := range m.names() {
		if *f.text != *was[i].text {
			out = setMember(out, f.name, rawjson.Quote(*f.text))
		}
	}
	parts, err := m.editParts(before.Parts)
	if err != nil {
		return nil, err
	}
	if parts != nil {
		out = setMember(out, "parts", parts)
	}
	switch {
	case bytes.Equal(m.Metadata, before.Metadata):
	case len(m.Metadata) == 0:
		out = rawjson.Remove(out, "metadata")
	default:
		out = setMember(out, "metadata", m.Metadata)
	}
	return bytes.Clone(out), nil
}

// editParts returns the encoded list of parts, nil if it does not differ from before. Unmoved parts
// keep the whitespace around them unless the list became shorter.
func (m UIMessage) editParts(before []Part) (list []byte, err error) {
	parts := make([][]byte, len(m.Parts))
	for i, p := range m.Parts {
		if parts[i], err = p.encode(); err != nil {
			return nil, fmt.Errorf("parts[%d]: %w", i, err)
		}
	}
	if slices.EqualFunc(parts, before, func(p []byte, was Part) bool { return bytes.Equal(p, was.raw) }) {
		return nil, nil
	}
	if len(before) == 0 || len(parts) < len(before) {
		return slices.Concat([]byte("["), bytes.Join(parts, []byte(",")), []byte("]")), nil
	}
	old := rawjson.Last(m.raw, "parts")
	end, i := 0, 0
	for at, e := range rawjson.ElementsAt(old) {
		list = append(append(list, old[end:at]...), parts[i]...)
		end = at + len(e)
		i++
	}
	for _, p := range parts[i:] {
		list = append(append(list, ','), p...)
	}
	return append(list, old[end:]...), nil
}

// MarshalJSON is Encode. Note that [json.Marshal] compacts the result: call Encode for the exact
// bytes.
func (m UIMessage) MarshalJSON() ([]byte, error) { return m.Encode() }

// UnmarshalJSON is DecodeMessage.
func (m *UIMessage) UnmarshalJSON(data []byte) error {
	decoded, err := DecodeMessage(data)
	if err != nil {
		return err
	}
	*m = decoded
	return nil
}
