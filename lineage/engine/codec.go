package engine

import (
	"encoding/json"
	"slices"
)

// Codec translates a message fragment between the form it is stored in and the
// form a model's client takes. Both may be called any number of times.
type Codec interface {
	// Decode returns the message to send.
	Decode() (UIMessage, error)
	// Encode returns the bytes to store.
	Encode() (json.RawMessage, error)
}

// NewCodec returns the codec of a message that is stored as it is sent. Later
// changes to m.Parts do not reach it.
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
