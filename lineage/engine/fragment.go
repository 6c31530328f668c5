package engine

import (
	"errors"
	"fmt"
	"maps"

	"github.com/lineage-store/lineage/lineage/chat"
)

// FragmentType distinguishes context from conversation.
type FragmentType string

const (
	// TypeFragment marks context, which is rendered into the system prompt.
	// The zero FragmentType means the same.
	TypeFragment FragmentType = "fragment"
	// TypeMessage marks a message, which is saved and never rendered.
	TypeMessage FragmentType = "message"
)

// Fragment is a named piece of context or a message.
//
// Fragments are values: copying one copies everything but Data, Metadata and
// Codec, which copies share and must not change.
type Fragment struct {
	// ID identifies a message. Context needs none.
	ID string
	// Name is the tag: role, hint, user. It must not be empty.
	Name string
	// Data is nil, a string, bool, number, Fragment, Object, [Raw] text, or a map, list, structure or
	// pointer, nested in any way up to MaxDepth. Maps are read in the order of their sorted keys.
	// Structures and other types that package encoding/json writes are what it writes of them, and
	// json.RawMessage is the JSON it holds. A map or JSON object that has the members name, a text, and
	// data, and no others but those that MarshalJSON writes, is a Fragment.
	Data any
	// Type is TypeFragment unless it says otherwise.
	Type FragmentType
	// Persist marks what is to be saved, for those who keep fragments of their own:
	// an Engine saves every message, and no context.
	Persist bool
	// Codec translates a message from and to its stored form.
	Codec Codec
	// Metadata is for the caller's own use and is never rendered.
	Metadata map[string]any
	// Origin is who said a message and with which model. A new version of a saved message
	// is derived from that, unless it says something else.
	Origin chat.Origin

	lazy *lastAssistant
}

// lastAssistant is the content of a message whose id is found at save time.
type lastAssistant struct{ content string }

// ErrNoCodec is returned when a message fragment cannot be translated.
var ErrNoCodec = errors.New("message fragment has no codec")

// IsFragment reports whether data is a Fragment, or a map that represents one.
func IsFragment(data any) bool {
	switch d := data.(type) {
	case Fragment:
		return true
	case map[string]any:
		_, ok := fragmentOf(d)
		return ok
	}
	return false
}

// IsObject reports whether data is an object: named fields, and no Fragment.
func IsObject(data any) bool {
	switch data.(type) {
	case Object, map[string]any, map[string]string:
		return !IsFragment(data)
	}
	return false
}

// IsMessage reports whether f belongs to the conversation.
func IsMessage(f Fragment) bool { return f.Type == TypeMessage }

// IsLazy reports whether f must be resolved before it can be saved.
func IsLazy(f Fragment) bool { return f.lazy != nil }

// Resolve gives a lazy fragment the id of the last assistant message, or a
// fresh one if id is empty. Other fragments are returned as they are.
func (f Fragment) Resolve(id string) Fragment {
	if f.lazy == nil {
		return f
	}
	resolved := AssistantText(f.lazy.content, id)
	resolved.Persist = f.Persist
	resolved.Metadata, resolved.Origin = maps.Clone(f.Metadata), f.Origin
	return resolved
}

// From returns the message fragment with the model that made it.
func (f Fragment) From(model string) Fragment {
	f.Origin.ModelID = model
	return f
}

// WithID returns the message fragment under another id, which its stored form
// carries too. f itself is unchanged.
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

// Validate reports the first thing in f that cannot be rendered or saved, as a
// *DataError where it concerns Data.
func (f Fragment) Validate() error {
	if IsMessage(f) && f.Codec == nil && f.lazy == nil {
		return fmt.Errorf("%s: %w", f.Name, ErrNoCodec)
	}
	_, err := fragmentNode(f, nil)
	return err
}
