package chat

import "encoding/json"

// Ref is the id of a message. It is empty, and null in JSON, if there is no message.
type Ref string

// MarshalJSON implements json.Marshaler.
func (r Ref) MarshalJSON() ([]byte, error) {
	if r == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(r))
}

// UnmarshalJSON implements json.Unmarshaler.
func (r *Ref) UnmarshalJSON(b []byte) error {
	*r = "" // null leaves what is there
	return json.Unmarshal(b, (*string)(r))
}
