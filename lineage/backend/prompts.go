package backend

import (
	"context"

	"github.com/lineage-store/lineage/structure"
)

// Prompts are the system prompts in force in contexts of one state: their own, or else the one that they inherit. "" is none.
type Prompts map[structure.ContextID]string

// Of returns the prompt in force in a context. Contexts with the same ancestors are found by these.
func (p Prompts) Of(ctx context.Context, r Reader, id structure.ContextID) (string, error) {
	var below []structure.ContextID
	prompt := ""
	for a, err := range Ancestors(ctx, r, id) {
		if err != nil {
			return "", err
		}
		known, ok := p[a.ID]
		if set := a.Overrides.SystemPrompt; !ok && set != nil {
			known, ok = *set, true
		}
		if below = append(below, a.ID); ok {
			prompt = known
			break
		}
	}
	for _, id := range below {
		p[id] = prompt
	}
	return prompt, nil
}
