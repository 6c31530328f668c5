package engine

import "github.com/google/uuid"

// User returns a message of the user's.
func User(text string) Fragment { return said(RoleUser, text, "") }

// UserMessage returns m as a message of the user's, whatever its role was.
func UserMessage(m UIMessage) Fragment {
	m.Role = RoleUser
	return Message(m)
}

// Assistant returns m as a message of the assistant's, whatever its role was.
func Assistant(m UIMessage) Fragment {
	m.Role = RoleAssistant
	return Message(m)
}

// AssistantText returns a message of the assistant's. An empty id asks for a
// fresh one; the id of a saved message makes this a new version of it.
func AssistantText(text, id string) Fragment { return said(RoleAssistant, text, id) }

// LastAssistantMessage returns a new version of the newest assistant message,
// whichever that is when it is saved. It is lazy until then: see
// [Fragment.Resolve].
func LastAssistantMessage(text string) Fragment {
	return Fragment{
		Name: RoleAssistant, Data: text, Type: TypeMessage, Persist: true,
		lazy: &lastAssistant{content: text},
	}
}

// Message returns the fragment of a message, named after its role. A message
// without an id is given one.
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

func said(role, text, id string) Fragment {
	return Message(UIMessage{ID: id, Role: role, Parts: []Part{TextPart(text)}})
}
