package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/lineage-store/lineage/lineage/chat"
)

// FragmentType distinguishes context from conversation.
type FragmentType string

const (
	// TypeFragment marks context, which is rendered into the system prompt. The zero value means
	// the same.
	TypeFragment FragmentType = "fragment"
	// TypeMessage marks a message, which is saved and never rendered.
	TypeMessage FragmentType = "message"
)

// Fragment is a piece of context with a name, or a message. It is a value; copies share Data,
// Metadata and Codec, which must not be changed.
type Fragment struct {
	// ID identifies a message. Context needs none.
	ID string
	// Name is the tag, such as role, hint or user. It must not be empty.
	Name string
	// Data is nil, a string, bool, number, Fragment, Object, [Raw] text, or a map, list, struct or pointer, nested up
	// to MaxDepth. Map keys are sorted. Structs and other types that package encoding/json supports are used in their
	// JSON form. json.RawMessage is used as JSON. A map or JSON object with the members name, a text, and data is a
	// Fragment. Its other members are ignored, except those that MarshalJSON writes.
	Data any
	// Type is context or message. Default TypeFragment.
	Type FragmentType
	// Persist marks fragments to be saved, for callers that keep fragments themselves: an Engine
	// saves every message, and no context.
	Persist bool
	// Codec converts a message from and to its stored form.
	Codec Codec
	// Metadata belongs to the caller and is not rendered.
	Metadata map[string]any
	// Origin is the user and model of a message. A new version of a saved message is derived from
	// it, unless Origin names another parent.
	Origin chat.Origin

	lazy *lastAssistant
}

// lastAssistant is the content of a message whose id is determined when it is saved.
type lastAssistant struct{ content string }

// ErrNoCodec is returned for a message fragment without a codec.
var ErrNoCodec = errors.New("message fragment has no codec")

// IsFragment reports whether data is a Fragment, or a map or JSON that represents one.
func IsFragment(data any) bool {
	switch d := data.(type) {
	case Fragment:
		return true
	case map[string]any:
		_, ok := fragmentOf(d)
		return ok
	case Object, map[string]string:
		return false
	}
	_, ok := inJSON(data).(Fragment)
	return ok
}

// IsObject reports whether data is rendered as an object with named fields and is not a Fragment. It may be a struct,
// a map of any type, or JSON.
func IsObject(data any) bool {
	switch data.(type) {
	case Object, map[string]any, map[string]string:
		return !IsFragment(data)
	}
	_, ok := inJSON(data).(Object)
	return ok
}

// inJSON returns data of a caller's type in its JSON form, nil if it has none.
func inJSON(data any) any {
	raw, err := json.Marshal(data)
	if err != nil {
		return nil
	}
	value, err := fromJSON(raw)
	if err != nil {
		return nil
	}
	return value
}

// IsMessage reports whether f belongs to the conversation.
func IsMessage(f Fragment) bool { return f.Type == TypeMessage }

// IsLazy reports whether f must be resolved before it can be saved.
func IsLazy(f Fragment) bool { return f.lazy != nil }

// Resolve sets the id of a lazy fragment: that of the last assistant message, or a new one if id is
// empty. Other fragments are returned unchanged.
func (f Fragment) Resolve(id string) Fragment {
	if f.lazy == nil {
		return f
	}
	resolved := AssistantText(f.lazy.content, id)
	resolved.Persist = f.Persist
	resolved.Metadata, resolved.Origin = maps.Clone(f.Metadata), f.Origin
	return resolved
}

// From returns the message fragment with the model that produced it.
func (f Fragment) From(model string) Fragment {
	f.Origin.ModelID = model
	return f
}

// WithID returns a copy of the message fragment with another id, also in its stored form.
func (f Fragment) WithID(id string) (Fragment, error) {
	if f.Codec == nil {
		return Fragment{}, fmt.Errorf("%s: %w", f.Name, ErrNoCodec)
	}
	m, err := f.Codec.Decode()
	if err != nil {
		return Fragment{}, fmt.Errorf("%s: %w", f.Name, err)
	}
	m.ID = id
	f.ID, f.Codec = id, NewCodec(m)
	return f, nil
}

// Validate returns the first reason why f cannot be rendered or saved. For Data it is a *DataError.
func (f Fragment) Validate() error {
	if IsMessage(f) && f.Codec == nil && f.lazy == nil {
		return fmt.Errorf("%s: %w", f.Name, ErrNoCodec)
	}
	_, err := fragmentNode(f, nil)
	return err
}
