package api

import (
	"encoding/json"

	"github.com/lineage-store/lineage/lineage"
)

// settings are the overrides of a context.
type settings struct {
	SystemPrompt *string         `json:"system_prompt,omitempty" doc:"the system prompt"`
	Model        *string         `json:"model,omitempty" doc:"the model that is asked"`
	Overrides    json.RawMessage `json:"overrides,omitempty" doc:"further settings: a JSON object"`
	Metadata     json.RawMessage `json:"metadata,omitempty" doc:"any JSON of the caller"`
}

func (s *settings) overrides() lineage.Overrides {
	return lineage.Overrides{SystemPrompt: s.SystemPrompt, Model: s.Model, JSON: orNil(s.Overrides)}
}

// orNil returns JSON, nil if it is empty or null.
func orNil(j json.RawMessage) json.RawMessage {
	if string(j) == "null" {
		return nil
	}
	return j
}
