package engine

import (
	"maps"

	"github.com/google/uuid"
)

// User returns a user message.
func User(text string) Fragment { return textMessage(RoleUser, text, "") }

// UserMessage returns m as a user message, whatever its role was.
func UserMessage(m UIMessage) Fragment {
	m.Role = RoleUser
	return Message(m)
}

// Assistant returns m as an assistant message, whatever its role was.
func Assistant(m UIMessage) Fragment {
	m.Role = RoleAssistant
	return Message(m)
}

// AssistantText returns an assistant message. With an empty id it gets a new one; the id of a saved
// message makes it a new version of that message.
func AssistantText(text, id string) Fragment { return textMessage(RoleAssistant, text, id) }

// LastAssistantMessage returns a new version of the assistant message that is the newest one when
// it is saved. Until then it is lazy: see [Fragment.Resolve].
func LastAssistantMessage(text string) Fragment {
	return Fragment{
		Name: RoleAssistant, Data: text, Type: TypeMessage, Persist: true,
		lazy: &lastAssistant{content: text},
	}
}

// Message returns the fragment of a message, named after its role. A message without an id gets
// one.
func Message(m UIMessage) Fragment {
	if m.ID == "" {
		m.ID = uuid.NewString()
	}
	return Fragment{
		ID: m.ID, Name: m.Role, Data: m.Text(), Type: TypeMessage, Persist: true,
		Codec: NewCodec(m),
	}
}

// MessageJSON returns the fragment of a message in its stored form.
func MessageJSON(data []byte) (Fragment, error) {
	m, err := DecodeMessage(data)
	if err != nil {
		return Fragment{}, err
	}
	return Message(m), nil
}

func textMessage(role, text, id string) Fragment {
	return Message(UIMessage{ID: id, Role: role, Parts: []Part{TextPart(text)}})
}

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
