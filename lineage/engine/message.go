package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// The roles of messages.
const (
	RoleSystem    = "system"
	RoleUser      = "user"
	RoleAssistant = "assistant"
)

// ErrBadMessage is returned when bytes are not a message, or a message cannot
// be written as JSON.
var ErrBadMessage = errors.New("malformed message")

// UIMessage is a structured message. One that was decoded keeps its bytes:
// encoded again it is the same to the byte, and after an edit everything but
// what was edited is. Fields and parts that are not known here survive as well.
type UIMessage struct {
	ID       string
	Role     string
	Parts    []Part
	Metadata json.RawMessage // empty when absent; replace, do not change in place

	raw string // the JSON this was decoded from, or empty
}

// DecodeMessage reads a message from its stored form. The message does not
// share data with the caller.
func DecodeMessage(data []byte) (UIMessage, error) {
	if !json.Valid(data) {
		return UIMessage{}, fmt.Errorf("%w: not JSON", ErrBadMessage)
	}
	return decodeMessage(string(data))
}

func decodeMessage(raw string) (UIMessage, error) {
	m := UIMessage{raw: raw}
	members, ok := rawMembers(raw)
	if !ok {
		return UIMessage{}, fmt.Errorf("%w: not an object", ErrBadMessage)
	}
	for _, f := range m.names() {
		value, ok := lastMember(raw, members, f.name)
		if !ok || value == "null" {
			continue
		}
		if value[0] != '"' {
			return UIMessage{}, fmt.Errorf("%w: %s is not a string", ErrBadMessage, f.name)
		}
		*f.text = unquote(value)
	}
	if value, ok := lastMember(raw, members, "metadata"); ok {
		m.Metadata = json.RawMessage(value)
	}
	value, ok := lastMember(raw, members, "parts")
	if !ok || value == "null" {
		return m, nil
	}
	elements, ok := rawElements(value)
	if !ok {
		return UIMessage{}, fmt.Errorf("%w: parts is not a list", ErrBadMessage)
	}
	m.Parts = make([]Part, len(elements))
	for i, e := range elements {
		m.Parts[i] = decodePart(value[e.from:e.to])
	}
	return m, nil
}

// names lists the fields that are plain text, in the order they are written.
func (m *UIMessage) names() []partField {
	return []partField{{name: "id", text: &m.ID}, {name: "role", text: &m.Role}}
}

// Encode returns the message in its stored form.
func (m UIMessage) Encode() (json.RawMessage, error) {
	if len(m.Metadata) > 0 && !json.Valid(m.Metadata) {
		return nil, fmt.Errorf("%w: metadata is not JSON", ErrBadMessage)
	}
	if m.raw == "" {
		return m.encodeNew()
	}
	before, err := decodeMessage(m.raw)
	if err != nil {
		return nil, err
	}
	out := m.raw
	was := before.names()
	for i, f := range m.names() {
		if *f.text != *was[i].text {
			out = setMember(out, f.name, quote(*f.text))
		}
	}
	parts, changed, err := m.editParts(before.Parts)
	if err != nil {
		return nil, err
	}
	if changed {
		out = setMember(out, "parts", parts)
	}
	switch {
	case string(m.Metadata) == string(before.Metadata):
	case len(m.Metadata) == 0:
		out = removeMember(out, "metadata")
	default:
		out = setMember(out, "metadata", string(m.Metadata))
	}
	return json.RawMessage(out), nil
}

// encodeNew writes a message that was not decoded from anything.
func (m UIMessage) encodeNew() (json.RawMessage, error) {
	parts, err := encodeParts(m.Parts)
	if err != nil {
		return nil, err
	}
	out := `{"id":` + quote(m.ID) + `,"role":` + quote(m.Role) + `,"parts":[` + strings.Join(parts, ",") + `]`
	if len(m.Metadata) > 0 {
		out += `,"metadata":` + string(m.Metadata)
	}
	return json.RawMessage(out + "}"), nil
}

func encodeParts(parts []Part) ([]string, error) {
	out := make([]string, len(parts))
	for i, p := range parts {
		var err error
		if out[i], err = p.encode(); err != nil {
			return nil, fmt.Errorf("parts[%d]: %w", i, err)
		}
	}
	return out, nil
}

// editParts returns the list of parts as it is now, and whether it differs from
// before. Parts that stay where they were keep the space around them, unless
// the list has become shorter.
func (m UIMessage) editParts(before []Part) (list string, changed bool, err error) {
	parts, err := encodeParts(m.Parts)
	if err != nil {
		return "", false, err
	}
	changed = len(parts) != len(before)
	for i := 0; !changed && i < len(parts); i++ {
		changed = parts[i] != before[i].raw
	}
	if !changed {
		return "", false, nil
	}
	members, _ := rawMembers(m.raw)
	old, _ := lastMember(m.raw, members, "parts")
	elements, _ := rawElements(old)
	if len(elements) == 0 || len(parts) < len(elements) {
		return "[" + strings.Join(parts, ",") + "]", true, nil
	}
	var b strings.Builder
	end := 0
	for i, e := range elements {
		b.WriteString(old[end:e.from])
		b.WriteString(parts[i])
		end = e.to
	}
	for _, p := range parts[len(elements):] {
		b.WriteString("," + p)
	}
	b.WriteString(old[end:])
	return b.String(), true, nil
}

// MarshalJSON is Encode. Note that [json.Marshal] removes the space from what
// it gets: call Encode for the exact bytes.
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
