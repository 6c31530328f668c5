package engine

import (
	"errors"
	"fmt"

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

// IsMessage reports whether f belongs to the conversation.
func IsMessage(f Fragment) bool { return f.Type == TypeMessage }

// IsLazy reports whether f must be resolved before it can be saved.
func IsLazy(f Fragment) bool { return f.lazy != nil }

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
