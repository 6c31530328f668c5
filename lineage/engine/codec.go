package engine

import (
	"encoding/json"
	"slices"
)

// Codec translates a message fragment between its stored form and the form for a model's client.
// Both methods may be called repeatedly.
type Codec interface {
	// Decode returns the message to send.
	Decode() (UIMessage, error)
	// Encode returns the bytes to store.
	Encode() (json.RawMessage, error)
}

// NewCodec returns the codec of a message that is stored as it is sent. It does not share m.Parts
// with the caller.
func NewCodec(m UIMessage) Codec {
	m.Parts = slices.Clone(m.Parts)
	return messageCodec{m}
}

type messageCodec struct{ message UIMessage }

func (c messageCodec) Decode() (UIMessage, error) {
	m := c.message
	m.Parts = slices.Clone(m.Parts)
	return m, nil
}

func (c messageCodec) Encode() (json.RawMessage, error) { return c.message.Encode() }
